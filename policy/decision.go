package policy

import (
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// Reason says why a read went where it went.
type Reason uint8

// The reasons. Those from ByStrong on end on the primary, but for Overloaded.
const (
	// Undecided is the reason of a statement that was not routed: a dry run, a
	// transaction, a pool that is not known.
	Undecided Reason = iota
	// Anywhere: nothing was to be seen, any healthy replica served.
	Anywhere
	// CaughtUp: the replica had replayed what was to be seen.
	CaughtUp
	// SameNode: the replica had served the session's previous read.
	SameNode
	// Awaited: a replica caught up within the wait budget.
	Awaited
	// Checked: the replica proved with the read itself that it had caught up.
	Checked
	// AfterWindow: the time window after the session's last write has passed, and
	// the servers have no positions that could say more.
	AfterWindow
	// ServedStale: too many reads fall back, and a healthy replica served though it
	// is not known to have what was to be seen.
	ServedStale
	// ByResolver: routing is switched off, and the read went where dbresolver
	// sent it, to a replica or the primary.
	ByResolver
	// ByStrong: the query, the context or the default asked for the primary.
	ByStrong
	// ByDefault: there was neither hint nor session and the default is Strong.
	ByDefault
	// NotPure: the statement is not provably a pure read.
	NotPure
	// LookupBeforeWrite: GORM reads in order to write, as in FirstOrCreate and
	// migrations.
	LookupBeforeWrite
	// InWrite: a write's hooks are running, or a read-write transaction of the
	// session is under way.
	InWrite
	// InTransaction: the statement ran inside a transaction or on a connection.
	InTransaction
	// NoReplicas: no replica is configured for the statement.
	NoReplicas
	// NoneHealthy: no replica is known to be healthy.
	NoneHealthy
	// NoneProven: no replica's position can be relied on.
	NoneProven
	// Behind: no replica caught up within the wait budget.
	Behind
	// OtherTimeline: the token is of another timeline than the replicas.
	OtherTimeline
	// UnknownCluster: which cluster this is, is not known yet.
	UnknownCluster
	// TokenAged: the token is older than the maximal age.
	TokenAged
	// TokenOverflow: the token was too large to name this cluster.
	TokenOverflow
	// MarkUnresolved: a write or read of unknown position could not be resolved.
	MarkUnresolved
	// ReplicaFailed: the replica that was chosen failed before the first row.
	ReplicaFailed
	// Canceled: the caller's context ended while waiting.
	Canceled
	// InWindow: the time window after the session's last write has not passed.
	InWindow
	// ByMode: the mode is PrimaryOnly.
	ByMode
	// Overloaded: too many reads fall back to the primary, and this one failed with
	// ErrOverloaded.
	Overloaded

	reasons
)

var reasonNames = [reasons]string{
	Undecided:         "not routed",
	Anywhere:          "any healthy replica",
	CaughtUp:          "replica has caught up",
	SameNode:          "replica of the previous read",
	Awaited:           "waited for replica",
	Checked:           "replica proved it with the read",
	AfterWindow:       "time window after the write has passed",
	ServedStale:       "stale, as too many reads fall back",
	ByResolver:        "dbresolver's choice, nothing is guaranteed",
	ByStrong:          "strong",
	ByDefault:         "default is strong",
	NotPure:           "not provably a pure read",
	LookupBeforeWrite: "lookup before a write",
	InWrite:           "write under way",
	InTransaction:     "in a transaction",
	NoReplicas:        "no replica configured",
	NoneHealthy:       "no healthy replica",
	NoneProven:        "no replica with a proven position",
	Behind:            "replicas are behind",
	OtherTimeline:     "token is of another timeline",
	UnknownCluster:    "cluster not known yet",
	TokenAged:         "token too old",
	TokenOverflow:     "token names too many clusters",
	MarkUnresolved:    "position of an earlier write or read is not known",
	ReplicaFailed:     "replica failed",
	Canceled:          "context ended while waiting",
	InWindow:          "time window after a write",
	ByMode:            "mode is primary only",
	Overloaded:        "too many reads fall back",
}

// reasonLabels are short names for metrics, which never change. Every reason has one.
var reasonLabels = [reasons]string{
	Undecided:         "not_routed",
	Anywhere:          "anywhere",
	CaughtUp:          "caught_up",
	SameNode:          "same_node",
	Awaited:           "awaited",
	Checked:           "checked",
	ByStrong:          "strong",
	ByDefault:         "default",
	NotPure:           "not_pure",
	LookupBeforeWrite: "lookup_before_write",
	InWrite:           "in_write",
	InTransaction:     "in_transaction",
	NoReplicas:        "no_replicas",
	NoneHealthy:       "none_healthy",
	NoneProven:        "none_proven",
	Behind:            "behind",
	OtherTimeline:     "other_timeline",
	UnknownCluster:    "unknown_cluster",
	TokenAged:         "token_aged",
	TokenOverflow:     "token_overflow",
	MarkUnresolved:    "mark_unresolved",
	ReplicaFailed:     "replica_failed",
	Canceled:          "canceled",
	AfterWindow:       "after_window",
	ServedStale:       "served_stale",
	ByResolver:        "resolver",
	InWindow:          "in_window",
	ByMode:            "primary_only",
	Overloaded:        "overloaded",
}

// Label is the reason's name in metrics: lower case, with underscores.
func (r Reason) Label() string {
	if r < reasons && reasonLabels[r] != "" {
		return reasonLabels[r]
	}
	return strings.ReplaceAll(r.String(), " ", "_")
}

func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown reason"
}

// Fallback reports whether the reason is that no replica qualified, so that the
// primary has to serve what was meant for replicas.
func (r Reason) Fallback() bool {
	switch r {
	case NoneHealthy, NoneProven, Behind, OtherTimeline, UnknownCluster,
		TokenAged, TokenOverflow, MarkUnresolved, ReplicaFailed:
		return true
	}
	return false
}

// Reasons returns every reason, for counters.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Decision is where a read goes and why. The zero value is undecided.
type Decision struct {
	// Replica is nil when the primary serves.
	Replica *Replica
	Reason  Reason
	// Level is what the read asked for after precedence.
	Level Level
	// Want is the position that was to be covered; zero for none.
	Want token.Position
	// Have is the node's position that was relied on; zero for none.
	Have token.Position
	// Incarnation is the replica's life that Have is of; zero if that is not
	// proven.
	Incarnation token.Incarnation
	// Age is how old the sample was that Have is from.
	Age time.Duration
	// Lost says that something the session has written or read may not have
	// survived a failover.
	Lost bool
	// Waited is the time spent waiting for a replica.
	Waited time.Duration
	// Judged says that there was something to see and replicas that might have it.
	Judged bool
	// Retries is how often the read was sent again, because the server that it had
	// been sent to failed or turned out to be behind; Tried is the last of these,
	// nil if it was the primary.
	Retries int
	Tried   *Replica
	// Stale says that the read was served outside of the guarantee: what was to be
	// seen may be missing.
	Stale bool
	// Err is why the read fails instead of being served: ErrOverloaded; else nil.
	Err error
}

// Gap is by how many bytes of WAL the position relied on was short of what was
// wanted; zero when it covered it, and when the two cannot be compared.
func (d *Decision) Gap() uint64 {
	otherLine := d.Want.Timeline != 0 && d.Want.Timeline != d.Have.Timeline
	if d.Have.IsZero() || otherLine || d.Want.LSN <= d.Have.LSN {
		return 0
	}
	return uint64(d.Want.LSN - d.Have.LSN)
}
