package rywplugin

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// Token returns what the statement behind tx wrote or read, together with what
// its session holds: whoever reads under it sees at least that. tx is what a
// finisher such as Create or First returned, or a transaction's handle: while the
// transaction is open its token is a mark, right for whoever learns of it only
// after the commit; afterwards it has the commit's position. Zero if tx was not
// executed.
func Token(tx *gorm.DB) token.Token { return callbacks.TokenOf(tx) }

// Into returns a context whose writes and reads are merged into *into by the time
// the call that did them returns: for Transaction, generics, Row and Rows, which
// return no *gorm.DB. It must not be read while such a call is under way.
func Into(ctx context.Context, into *token.Token) context.Context { return session.Collect(ctx, into) }

// Explanation says where a statement went and why.
type Explanation struct {
	// Node is the replica's host and port; "nowhere" of a read that failed with
	// ErrOverloaded, "primary" otherwise.
	Node string
	// Replica says that a replica served it.
	Replica bool
	// Reason says why.
	Reason policy.Reason
	// Level is what was asked for, after precedence.
	Level policy.Level
	// Want is the position that had to be covered, Have the one relied on: on
	// the primary after a wait, the best that a replica had. Zero for none.
	Want, Have token.Position
	// Age is how old Have was when it was relied on.
	Age time.Duration
	// Gap is by how many bytes of WAL Have is short of Want.
	Gap uint64
	// PossiblyLost says that something the session has written or read may not have
	// survived a failover: it lies beyond the point where its timeline was left, or
	// that point is not known. The read was served all the same.
	PossiblyLost bool
	// Stale says that the read was served outside of the guarantee, as
	// Config.Fallback.Stale or the mode PlainResolver has it: what it had to see may
	// be missing.
	Stale bool
	// Waited is the time spent waiting for a replica.
	Waited time.Duration
	// Retries is how often the read was sent again, because the server that it had
	// been sent to failed or turned out to be behind. Tried is the last of these.
	Retries int
	Tried   string
	// Token is Token(tx).
	Token token.Token
}

// Explain says where the statement behind tx went and why. The zero Explanation
// is that of a statement that was not executed or not routed.
func Explain(tx *gorm.DB) Explanation {
	if tx == nil || tx.Statement == nil {
		return Explanation{}
	}
	e := ExplainContext(tx.Statement.Context)
	if d, ok := callbacks.DecisionOf(tx.Statement.ConnPool); ok {
		e = explanation(d)
	} else if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); ok && e.Reason == policy.Undecided {
		e.Node, e.Reason = "primary", policy.InTransaction
	}
	e.Token = Token(tx)
	return e
}

// SQLTx returns the *sql.Tx of a transaction, for libraries that take one, such as
// job queues. tx is the handle that Begin or Transaction gave; false if it is not
// in a transaction. Whatever is done with the result counts as a write, if it has
// not ended yet. Commit through tx: a commit of the *sql.Tx itself is seen only if
// the pool was opened with rywpgx.
func SQLTx(tx *gorm.DB) (*sql.Tx, bool) {
	if tx == nil || tx.Statement == nil {
		return nil, false
	}
	return callbacks.SQLTx(tx.Statement.ConnPool)
}

// ExplainContext is Explain for a statement's context, as loggers and callbacks have it.
// Of a statement that has run it is without Token if it ran in a transaction.
func ExplainContext(ctx context.Context) Explanation {
	d, r := callbacks.DecisionAt(ctx)
	var e Explanation
	if d.Reason != policy.Undecided {
		e = explanation(d)
	}
	if r != nil {
		e.Token = r.Token()
	}
	return e
}

func explanation(d policy.Decision) Explanation {
	e := Explanation{
		Node: "primary", Reason: d.Reason, Level: d.Level, Want: d.Want, Have: d.Have,
		Age: d.Age, Gap: d.Gap(), Waited: d.Waited, PossiblyLost: d.Lost, Retries: d.Retries,
		Stale: d.Stale,
	}
	if d.Err != nil {
		e.Node = "nowhere"
	}
	if d.Replica != nil {
		e.Node, e.Replica = d.Replica.Node.Name(), true
	}
	switch {
	case d.Tried != nil:
		e.Tried = d.Tried.Node.Name()
	case d.Retries > 0:
		e.Tried = "primary"
	}
	return e
}

// Err is ErrLostWrite if something was possibly lost, else nil.
func (e Explanation) Err() error {
	if e.PossiblyLost {
		return ErrLostWrite
	}
	return nil
}

// String is the explanation in one line.
func (e Explanation) String() string {
	if e.Reason == policy.Undecided {
		return "not routed"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Node, e.Reason)
	if !e.Want.IsZero() {
		fmt.Fprintf(&b, ", want %s", e.Want)
	}
	if !e.Have.IsZero() {
		fmt.Fprintf(&b, ", have %s (%s old)", e.Have, e.Age.Round(time.Microsecond))
	}
	if e.Gap > 0 {
		fmt.Fprintf(&b, ", %d bytes short", e.Gap)
	}
	if e.Stale {
		b.WriteString(", STALE")
	}
	if e.PossiblyLost {
		b.WriteString(", possibly lost in a failover")
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", waited %s", e.Waited.Round(time.Microsecond))
	}
	switch {
	case e.Retries > 1:
		fmt.Fprintf(&b, ", retried %d times, the last after %s", e.Retries, e.Tried)
	case e.Retries > 0:
		fmt.Fprintf(&b, ", retried after %s", e.Tried)
	}
	return b.String()
}

// NodeStatus is what is known of one server.
type NodeStatus struct {
	// Name is host and port.
	Name string
	// Cluster numbers the primary it belongs to; the plugin's own is 0.
	Cluster int
	Primary bool
	// Healthy nodes serve reads that ask for nothing, Proven ones token reads.
	Healthy, Proven bool
	// Condition sums that up, together with whether the node answers.
	Condition watcher.Condition
	// Reason says why a node is not healthy or not proven.
	Reason string
	// Position is the replay position, on a primary the insert position.
	Position token.Position
	// Gap is by how many bytes of WAL a replica is behind the primary's position
	// as it is known; zero for a primary.
	Gap uint64
	// Lag is how long before a replica was last asked the primary was still where
	// the replica is: how long ago now, less Age. It is an upper bound; what it is
	// too long by, and from when on positions are not remembered any more, is at
	// watcher.Node.Lag. Zero when the replica had caught up by then, even if Gap
	// says that the primary has moved on since.
	Lag time.Duration
	// LagKnown says that Lag is that. Otherwise Lag is at least how long it was, and
	// zero if nothing is known: a server does not answer, or the replica is on
	// another timeline.
	LagKnown bool
	// Paused says that replay is paused.
	Paused bool
	// Out is how long a replica has been out of rotation for its lag; zero: it is in.
	// Stuck says that this is longer than Config.Rotation.StuckAfter.
	Out   time.Duration
	Stuck bool
	// Age is how long ago the position was asked for; zero if never.
	Age time.Duration
	// Queries counts position queries sent, Calls the questions they answered.
	Queries, Calls int64
	// Reads counts the routed reads that it was sent, by level and reason.
	Reads []policy.ReadCount
}

// ClusterStatus is what was counted of one primary and its replicas.
type ClusterStatus struct {
	// TokenReads had something to see and replicas that might have it. Fallbacks are
	// those of them that the primary served because no replica qualified, for each
	// reason that there is for it.
	TokenReads int64
	Fallbacks  map[policy.Reason]int64
	// OtherFallbacks counts reads that the primary served for the same reasons and
	// that had nothing to see: a bound on staleness at most.
	OtherFallbacks map[policy.Reason]int64
	// Overloaded counts reads that failed with ErrOverloaded, ServedStale those that
	// were served outside of the guarantee instead, as Config.Fallback has it.
	Overloaded, ServedStale int64
	// FallingBack is how many reads that fell back are under way, if there is a cap
	// on that.
	FallingBack int
	// Awaited are the waits of reads that a replica served in the end, InVain of
	// those that none did.
	Awaited, InVain policy.Waits
	// PossiblyLost counts reads under sessions that hold something which may not have
	// survived a failover.
	PossiblyLost int64
	// BeyondPrimary counts reads under positions that the primary turned out not to
	// have: what they stand for was lost, or they are made up.
	BeyondPrimary int64
	// MarksResolved counts reads that found the position of an earlier write or read
	// which was but a mark.
	MarksResolved int64
}

// Status is the freshness table and the counters at one moment.
type Status struct {
	Nodes []NodeStatus
	// Clusters are those that NodeStatus.Cluster numbers.
	Clusters []ClusterStatus
	// Reads counts routed reads by reason.
	Reads map[policy.Reason]int64
	// Captures counts writes whose position was captured, SharedCaptures those of
	// them that joined another's position query; CaptureFailures those for which
	// that failed; Marks the writes that left a mark instead.
	Captures, SharedCaptures, CaptureFailures, Marks int64
	// ReadMarks counts reads of the primary, failed writes among them, that left a
	// mark because their position was not asked for or not to be had.
	ReadMarks int64
	// InvalidTokens counts statements that failed because the token they were given
	// is none.
	InvalidTokens int64
	// Tuning is what is in force.
	Tuning Tuning
}

// Status returns the freshness table and counters. It asks no server.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	groups, layer := p.groups, p.layer
	p.mu.Unlock()
	st := Status{Reads: map[policy.Reason]int64{}, Tuning: p.Tuning()}
	st.Nodes, _ = p.nodes(groups)
	for _, g := range groups {
		st.Clusters = append(st.Clusters, clusterStatus(p.router.Stats(g)))
	}
	for _, why := range policy.Reasons() {
		if n := p.router.Count(why); n > 0 {
			st.Reads[why] = n
		}
	}
	if layer != nil {
		c := layer.Counters()
		st.Captures, st.SharedCaptures, st.CaptureFailures = c.Captures, c.Shared, c.Failures
		st.Marks, st.ReadMarks, st.InvalidTokens = c.WriteMarks, c.ReadMarks, c.InvalidTokens
	}
	return st
}

// nodes returns what is known of all servers, and from which states.
func (p *Plugin) nodes(groups []*watcher.Group) (all []NodeStatus, states []*watcher.State) {
	reads, standing := p.readsOfReplicas(), map[*watcher.Node]policy.Standing{}
	for _, rep := range p.replicas() {
		standing[rep.Node] = p.router.Standing(rep, mono.Now())
	}
	for i, g := range groups {
		primary := g.Primary.State()
		reads[g.Primary] = p.router.Stats(g).Reads
		first := len(all)
		for _, n := range append([]*watcher.Node{g.Primary}, g.Replicas()...) {
			st, at := n.State(), standing[n]
			s := nodeStatus(n, st, i, n.IsPrimary(), primary)
			s.Reads, s.Out, s.Stuck = reads[n], at.Out, at.Stuck
			all, states = append(all, s), append(states, st)
		}
		tellApart(all[first:])
	}
	return all, states
}

func (p *Plugin) readsOfReplicas() map[*watcher.Node][]policy.ReadCount {
	reads := map[*watcher.Node][]policy.ReadCount{}
	for _, pool := range p.router.Pools.All() {
		if rep := pool.Replica; rep != nil {
			reads[rep.Node] = rep.Reads()
		}
	}
	return reads
}

func clusterStatus(s policy.Stats) ClusterStatus {
	return ClusterStatus{
		TokenReads: s.TokenReads, Fallbacks: s.Fallbacks, OtherFallbacks: s.OtherFallbacks,
		Overloaded: s.Overloaded, ServedStale: s.ServedStale, FallingBack: s.FallingBack, Awaited: s.Awaited, InVain: s.InVain,
		PossiblyLost: s.PossiblyLost, BeyondPrimary: s.BeyondPrimary, MarksResolved: s.MarksResolved,
	}
}

// tellApart numbers nodes of a cluster that have the same name: one server that was
// configured twice.
func tellApart(nodes []NodeStatus) {
	seen := map[string]int{}
	for i := range nodes {
		name := nodes[i].Name
		if seen[name]++; seen[name] > 1 {
			nodes[i].Name = fmt.Sprintf("%s#%d", name, seen[name])
		}
	}
}

func nodeStatus(n *watcher.Node, st *watcher.State, cluster int, primary bool, p *watcher.State) NodeStatus {
	s := NodeStatus{
		Name: n.Name(), Cluster: cluster, Primary: primary, Healthy: st.Healthy, Proven: st.Proven,
		Condition: st.Condition(), Reason: st.Reason, Position: st.Position, Paused: st.Paused,
	}
	s.Queries, s.Calls = n.Counters()
	if st.Begun != 0 {
		s.Age = mono.Now().Sub(st.Begun)
	}
	s.Lag, s.LagKnown = n.Lag()
	if !primary && st.Position.Timeline == p.Position.Timeline && p.Position.LSN > st.Position.LSN {
		s.Gap = uint64(p.Position.LSN - st.Position.LSN)
	}
	return s
}
