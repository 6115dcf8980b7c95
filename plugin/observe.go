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

// ExplainContext is Explain for a statement's context.
func ExplainContext(ctx context.Context) Explanation {
	r := callbacks.RecordOf(ctx)
	if r == nil {
		return Explanation{}
	}
	e := explanation(r.Decision())
	e.Token = r.Token()
	return e
}

func explanation(d policy.Decision) Explanation {
	e := Explanation{
		Node: "primary", Reason: d.Reason, Level: d.Level, Want: d.Want, Have: d.Have,
		Age: d.Age, Gap: d.Gap(), Waited: d.Waited, PossiblyLost: d.Lost,
		Stale: d.Stale,
	}
	if d.Err != nil {
		e.Node = "nowhere"
	}
	if d.Replica != nil {
		e.Node, e.Replica = d.Replica.Node.Name(), true
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
	// Reason says why a node is not healthy or not proven.
	Reason string
	// Position is the replay position, on a primary the insert position.
	Position token.Position
	// Gap is by how many bytes of WAL a replica is behind the primary's position
	// as it is known; zero for a primary.
	Gap uint64
	// Paused says that replay is paused.
	Paused bool
	// Lag is how long a replica was behind, up to watcher.MaxLag, when that was looked
	// at last, at most a quarter of a second after its position was asked for; zero
	// for a primary.
	Lag time.Duration
	// Out is how long a replica has been out of rotation for its lag; zero: it is in.
	// Stuck says that this is longer than Config.Rotation.StuckAfter.
	Out   time.Duration
	Stuck bool
	// Age is how long ago the position was asked for; zero if never.
	Age time.Duration
	// Queries counts position queries sent, Calls the questions they answered.
	Queries, Calls int64
}

// Status is the freshness table and the counters at one moment.
type Status struct {
	Nodes []NodeStatus
	// Reads counts routed reads by reason.
	Reads map[policy.Reason]int64
	// Captures counts writes whose position was captured; CaptureFailures those
	// for which that failed; Marks the writes that left a mark instead.
	Captures, CaptureFailures, Marks int64
	// Fallbacks counts, for each cluster, the reads that fell back to its primary.
	Fallbacks []policy.Fallbacks
	// Tuning is what is in force.
	Tuning Tuning
}

// Status returns the freshness table and counters. It asks no server.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	groups, layer := p.groups, p.layer
	p.mu.Unlock()
	st := Status{Reads: map[policy.Reason]int64{}, Tuning: p.Tuning()}
	standing := map[*watcher.Node]policy.Standing{}
	for _, rep := range p.replicas() {
		standing[rep.Node] = p.router.Standing(rep, now())
	}
	for i, g := range groups {
		st.Fallbacks = append(st.Fallbacks, p.router.Fallbacks(g))
		primary := g.Primary.State()
		st.Nodes = append(st.Nodes, nodeStatus(g.Primary, i, true, primary))
		for _, n := range g.Replicas() {
			s, at := nodeStatus(n, i, false, primary), standing[n]
			s.Lag, s.Out, s.Stuck = at.Lag, at.Out, at.Stuck
			st.Nodes = append(st.Nodes, s)
		}
	}
	for _, why := range policy.Reasons() {
		if n := p.router.Count(why); n > 0 {
			st.Reads[why] = n
		}
	}
	if layer != nil {
		st.Captures, st.CaptureFailures, st.Marks = layer.Counters()
	}
	return st
}

func nodeStatus(n *watcher.Node, cluster int, primary bool, p *watcher.State) NodeStatus {
	st := n.State()
	s := NodeStatus{
		Name: n.Name(), Cluster: cluster, Primary: primary, Healthy: st.Healthy, Proven: st.Proven,
		Reason: st.Reason, Position: st.Position, Paused: st.Paused,
	}
	s.Queries, s.Calls = n.Counters()
	if st.Begun != 0 {
		s.Age = mono.Now().Sub(st.Begun)
	}
	if !primary && st.Position.Timeline == p.Position.Timeline && p.Position.LSN > st.Position.LSN {
		s.Gap = uint64(p.Position.LSN - st.Position.LSN)
	}
	return s
}
