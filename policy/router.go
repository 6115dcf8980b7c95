package policy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Router makes decisions and counts them. Safe for concurrent use.
type Router struct {
	settings atomic.Pointer[Settings]
	counts   atomic.Pointer[map[*watcher.Group]*counters]
	recent   atomic.Pointer[recent] // nil: none are remembered
	rotating rotating
	Pools    Pools
}

// NewRouter returns a router that goes by s.
func NewRouter(s Settings) *Router {
	r := &Router{}
	r.Use(s)
	return r
}

// Request is one read that wants a node. It is reused: Reset it before use.
type Request struct {
	Set   *Set
	Level Level
	// MaxStaleness bounds how stale the node may be that serves, on the levels
	// below Strong; zero is no bound.
	MaxStaleness time.Duration
	// Sessions are to be honoured: the hint's, the context's. The slice becomes
	// the request's own.
	Sessions []*session.Session
	// Prefer is the replica of the same query tree's earlier statement, taken
	// if it qualifies.
	Prefer *Replica
	// Exclude is a replica that just failed.
	Exclude *Replica
	// NoReplica says that none is to be tried any more once the read falls back.
	NoReplica bool
	// NoChecks says that the read cannot carry a check.
	NoChecks bool
	// Checks is how many checked reads found their replica behind.
	Checks int

	key    token.Key // of Set's cluster, for this decision
	need   session.Need
	lost   bool           // something of need may be
	fresh  token.Position // what MaxStaleness comes to beside a need
	cands  []*Replica     // scratch
	seek   seek           // which replicas would have done, if none did
	token  bool           // there is something to be seen
	spare  bool           // those out of rotation do not serve
	permit *permit        // of a read that fell back, until it has ended

	began, giveUp mono.Instant // of waiting

	fewSessions [2]*session.Session // where Sessions and cands begin
	fewCands    [4]*Replica
}

// Reset forgets everything but the scratch space.
func (q *Request) Reset() {
	clear(q.cands[:cap(q.cands)])
	clear(q.Sessions[:cap(q.Sessions)])
	q.End()
	*q = Request{cands: q.cands[:0], Sessions: q.Sessions[:0]}
}

// oldest is when a token may have been minted to be judged; zero is any time.
func (r *Router) oldest() time.Time {
	if age := r.Settings().MaxTokenAge; age > 0 {
		return time.Now().Add(-age)
	}
	return time.Time{}
}

// Honour has the read see what sessions must see; nil ones ask for nothing.
func (q *Request) Honour(sessions ...*session.Session) {
	if cap(q.Sessions) == 0 {
		q.Sessions = q.fewSessions[:0]
	}
	for _, s := range sessions {
		if s != nil {
			q.Sessions = append(q.Sessions, s)
		}
	}
}

// Decide chooses where a read goes. It waits for a replica if none qualifies, at
// most for the budget, and asks servers for their position where a mark needs
// resolving. With a replica that has caught up it neither waits nor allocates.
func (r *Router) Decide(ctx context.Context, q *Request) Decision {
	d := Decision{Level: q.Level}
	q.seek = seekNone
	if q.Set != nil {
		q.key = q.Set.Group.Key()
	}
	switch {
	case q.Level == Strong:
		d.Reason = ByStrong
	case q.Set == nil || len(q.Set.Replicas) == 0:
		d.Reason = NoReplicas
	case r.Settings().Mode == PrimaryOnly:
		d.Reason = ByMode
	case q.Level == StaleOK:
		r.decideStale(ctx, q, &d)
	default:
		r.decideToken(ctx, q, &d)
	}
	if d.Replica == nil && d.Reason.Fallback() {
		r.fallBack(ctx, q, &d)
	}
	return d
}

func (r *Router) decideStale(ctx context.Context, q *Request, d *Decision) {
	if q.MaxStaleness > 0 {
		if !q.bound(ctx) {
			d.Reason = NoneHealthy
			return
		}
		q.need = session.Need{Position: q.fresh}
		d.Want = q.fresh
		r.pickOrWait(ctx, q, d)
		return
	}
	q.seek = seekHealthy
	if rep := r.pickHealthy(q); rep != nil {
		d.serve(rep, Anywhere)
		return
	}
	d.Reason = NoneHealthy
	if q.Exclude != nil {
		d.Reason = ReplicaFailed
	}
}

func (r *Router) decideToken(ctx context.Context, q *Request, d *Decision) {
	r.readNeed(ctx, q)
	if q.need.None() {
		r.decideStale(ctx, q, d)
		return
	}
	q.token = !q.need.Open
	d.Judged = q.token
	if q.MaxStaleness > 0 && !q.bound(ctx) {
		d.Reason = NoneHealthy
		return
	}
	q.need.Position = q.need.Position.Max(q.fresh)
	switch {
	case q.need.Open:
		d.Reason = InWrite
	case q.key.System == 0:
		d.Reason = UnknownCluster
	case q.need.Aged:
		d.Reason = TokenAged
	case q.need.Elsewhere:
		d.Reason = TokenOverflow
	case r.inWindow(q):
		d.Reason = InWindow
	case r.windowDecides(q):
		r.afterWindow(q, d)
	case q.need.Marked && !r.resolveMarks(ctx, q):
		d.Reason = MarkUnresolved
	default:
		r.decideReads(ctx, q, d)
	}
	d.Want, d.Lost = q.need.Want(), q.lost
}

// bound turns MaxStaleness into a position. It fails when the primary does not
// tell where it is.
func (q *Request) bound(ctx context.Context) bool {
	ask, cancel := asking(ctx)
	defer cancel()
	p, err := q.Set.Group.PositionSince(ask, q.MaxStaleness)
	q.key, q.fresh = q.Set.Group.Key(), p // which the answer may have told
	return err == nil
}

func (r *Router) readNeed(ctx context.Context, q *Request) {
	q.need = session.Need{WritesOnly: r.Settings().Monotonic == MonotonicOff}
	oldest := r.oldest()
	for _, s := range q.Sessions {
		s.Need(&q.need, q.key, oldest)
	}
	q.lost = r.judgeLines(ctx, q) || q.lost
	q.need.Position = q.need.Position.Max(q.fresh)
}

// resolveMarks turns marks into a position of the primary, asked for now, if
// some replica could be that far.
func (r *Router) resolveMarks(ctx context.Context, q *Request) bool {
	if !q.anyProven() {
		return false
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	s, err := q.Set.Group.Primary.Sample(ctx)
	if err != nil || q.key.System != s.System {
		return false
	}
	for _, ses := range q.Sessions {
		ses.Advance(q.key, s.Position, s.Begun, false)
	}
	r.counters(q.Set.Group).resolved.Add(1)
	r.readNeed(ctx, q)
	return !q.need.PrimaryOnly()
}

// askFor is how long a server may take to answer when a read cannot be routed
// without its position. One that hangs does not hold the read for longer.
const askFor = 100 * time.Millisecond

func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, askFor)
}

func (q *Request) anyProven() bool {
	for _, rep := range q.Set.Replicas {
		if rep != q.Exclude && rep.Node.State().Proven {
			return true
		}
	}
	return false
}

// decideReads honours reads of replicas whose position is not known: the node
// that was read may serve again, others only past its position.
func (r *Router) decideReads(ctx context.Context, q *Request, d *Decision) {
	r.settleReads(ctx, q)
	if reads := q.need.Reads(); len(reads) == 1 {
		if rep := q.Set.find(reads[0].Node); rep != nil && rep != q.Exclude {
			if st := rep.Node.State(); st.Incarnation == reads[0].Node && q.covered(st) {
				d.rely(rep, st, SameNode)
				return
			}
		}
	}
	if len(q.need.Reads()) > 0 && !r.askReads(ctx, q) {
		d.Reason = MarkUnresolved
		return
	}
	r.pickOrWait(ctx, q, d)
}

// settleReads turns reads into floors where the watcher has asked the node since.
func (r *Router) settleReads(ctx context.Context, q *Request) {
	settled := false
	for _, nr := range q.need.Reads() {
		rep := q.Set.find(nr.Node)
		if rep == nil {
			continue
		}
		if st := rep.Node.State(); st.Incarnation == nr.Node && st.Begun > nr.At && !st.Failed {
			q.settle(nr, st.Sample)
			settled = true
		}
	}
	if settled {
		r.readNeed(ctx, q)
	}
}

func (q *Request) settle(nr session.NodeRead, s watcher.Sample) {
	for _, ses := range q.Sessions {
		ses.SettleRead(nr.Key, nr.Node, s.Position, s.Begun)
	}
}

// askReads asks the nodes that were read for their positions. A node that is in
// another life by now, or not there, is replaced by the primary.
func (r *Router) askReads(ctx context.Context, q *Request) bool {
	ask, cancel := asking(ctx)
	defer cancel()
	for _, nr := range q.need.Reads() {
		rep := q.Set.find(nr.Node)
		if rep != nil {
			if s, err := rep.Node.Sample(ask); err == nil && s.Incarnation == nr.Node {
				q.settle(nr, s)
				continue
			}
		}
		for _, ses := range q.Sessions {
			ses.LoseNode(nr.Key, nr.Node)
		}
	}
	r.readNeed(ctx, q)
	if q.need.Marked && !r.resolveMarks(ctx, q) {
		return false
	}
	return len(q.need.Reads()) == 0 && !q.need.PrimaryOnly()
}

// covered reports whether a state proves that its node has replayed what is to
// be seen, reads of unknown position aside.
func (q *Request) covered(st *watcher.State) bool {
	n := &q.need
	if !st.Proven || st.Failed || st.System != q.key.System || st.Position.LSN < n.Position.LSN || st.Position.LSN < n.Bare {
		return false
	}
	if n.Position.Timeline != 0 && n.Position.Timeline != st.Position.Timeline {
		return false
	}
	return n.Bare == 0 || st.Position.Timeline == q.Set.Group.Primary.State().Position.Timeline
}

func (r *Router) pickOrWait(ctx context.Context, q *Request, d *Decision) {
	q.seek = seekCovered
	rep := r.pick(q, q.covered)
	if rep != nil {
		if st := rep.Node.State(); q.covered(st) {
			d.rely(rep, st, CaughtUp)
			return
		}
	}
	r.wait(ctx, q, d)
}

// pick chooses among the replicas whose state will do, or returns nil.
func (r *Router) pick(q *Request, ok func(*watcher.State) bool) *Replica {
	if cap(q.cands) == 0 {
		q.cands = q.fewCands[:0]
	}
	q.cands = q.cands[:0]
	for _, rep := range q.Set.Replicas {
		if rep == q.Exclude || q.spare && rep.out.Load() || !ok(rep.Node.State()) {
			continue
		}
		if rep == q.Prefer {
			return rep
		}
		q.cands = append(q.cands, rep)
	}
	switch len(q.cands) {
	case 0:
		return nil
	case 1:
		return q.cands[0]
	}
	return r.Settings().Balancer.Pick(q.cands)
}

// serve makes a healthy replica the choice without relying on its position.
func (d *Decision) serve(rep *Replica, why Reason) { d.rely(rep, rep.Node.State(), why) }

func (d *Decision) rely(rep *Replica, st *watcher.State, why Reason) {
	d.Replica, d.Reason = rep, why
	d.Have = st.Position
	if st.Proven { // otherwise nobody knows which server answers
		d.Incarnation = st.Incarnation
	}
	d.Age = mono.Now().Sub(st.Begun)
}
