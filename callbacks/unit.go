package callbacks

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// unit is a statement, or a transaction, whose end the driver reports: who is to
// learn of it. A pool of rywpgx sees every commit by itself, so the callbacks
// only say who listens.
type unit struct {
	observers observers
	own       *session.Session
	pure      bool   // a read, of which the callbacks tell
	renew     bool   // replaces a token over its maximal age
	writing   bool   // BeginWrite was called for the observers
	fell      func() // ends a transaction that fell back to the primary, or nil
	part      bool   // of a transaction, which is counted instead
	ended     atomic.Bool
	unwatch   atomic.Pointer[func() bool] // stops watching the context
	// owed is for a read that ended without a position while its callbacks run:
	// they know whether anything was seen.
	owed atomic.Int32
}

// The states of unit.owed; zero is that of a read under way.
const (
	owed int32 = iota + 1 // it ended, and a mark may be due
	told                  // its callbacks have ended
)

// write keeps the observers' other reads on the primary until the unit has ended.
func (u *unit) write(key token.Key) {
	u.writing = true
	u.own.MarkWrote(key)
	u.observers.each((*session.Session).BeginWrite)
}

// finish ends what write began. Idempotent.
func (u *unit) finish() {
	if stop := u.unwatch.Load(); stop != nil {
		(*stop)()
	}
	if u.ended.Swap(true) {
		return
	}
	if u.writing {
		u.observers.each((*session.Session).EndWrite)
	}
	if u.fell != nil {
		u.fell()
	}
}

// watch ends the unit of a transaction whose context ends: database/sql rolls it back
// then by closing its connection, of which the driver tells nothing. A commit that is
// under way is reported all the same.
func (u *unit) watch(ctx context.Context, key token.Key) {
	stop := context.AfterFunc(ctx, func() {
		u.observers.each(func(s *session.Session) { s.MarkSawPrimary(key) })
		u.finish()
	})
	u.unwatch.Store(&stop)
}

// driverHooks is what the driver of a primary's pool tells.
type driverHooks struct {
	layer *Layer
	group *watcher.Group
}

var _ rywpgx.Hooks = driverHooks{}

// PrimaryHooks returns what the pool of a group's primary is to be bound to, if
// it is one of rywpgx.
func (l *Layer) PrimaryHooks(g *watcher.Group) rywpgx.Hooks { return driverHooks{l, g} }

// Admit implements rywpgx.Hooks. A primary that cannot be asked for its position
// takes writes all the same; they are marked.
func (h driverHooks) Admit(ctx context.Context, conn *pgx.Conn) (*watcher.Probe, error) {
	if len(h.group.Replicas()) == 0 {
		conn.PgConn().CustomData()[unasked] = true
		return nil, nil
	}
	p := watcher.NewProbe(conn)
	s, err := p.Take(ctx)
	if err != nil {
		h.layer.tell(Event{Kind: NoPosition, Node: h.group.Primary.Name(), Err: err})
		return nil, nil
	}
	return p, h.group.Primary.Meet(conn, s)
}

// unasked is where a connection says that it was admitted while there was no
// replica to ask positions for.
const unasked = "gorm-ryw: not asked for its position"

// Admitted implements rywpgx.Hooks.
func (h driverHooks) Admitted(conn *pgx.Conn) bool {
	if conn.PgConn().CustomData()[unasked] != nil {
		return len(h.group.Replicas()) == 0
	}
	return h.group.Primary.Met(conn)
}

// Pure implements rywpgx.Hooks.
func (h driverHooks) Pure(sql string) bool { return h.layer.writesNothing(sql) }

// Observer implements rywpgx.Hooks.
func (h driverHooks) Observer(ctx context.Context) rywpgx.Observer {
	v := ctxval.From(ctx)
	if v == nil {
		return nil
	}
	if u, ok := v.Unit.(*unit); ok {
		if u == nobody {
			return rywpgx.Ignored
		}
		return report{h: h, unit: u}
	}
	if rec, ok := v.Record.(*Record); ok && rec.active {
		return report{h: h, unit: &rec.unit}
	}
	ses, hint, sink, _ := valuesOf(ctx)
	r := report{h: h, plain: [2]*session.Session{ses, sink}}
	if hint != nil && len(hint.Sessions) > 0 {
		r.hint = hint
	}
	if r.plain == [2]*session.Session{} && r.hint == nil {
		return nil
	}
	return r
}

// report tells the observers of a unit, or the sessions of a context that no
// statement of GORM's stands behind. Comparable, as rywpgx wants it.
type report struct {
	h     driverHooks
	unit  *unit
	plain [2]*session.Session
	hint  *policy.Hint
}

func (r report) each(do func(*session.Session)) {
	if r.unit != nil {
		r.unit.observers.each(do)
		return
	}
	o := observers{few: [4]*session.Session{r.plain[0]}}
	o.add(r.plain[1])
	if r.hint != nil {
		o.addAll(r.hint.Sessions)
	}
	o.each(do)
}

// counts reports whether the event is to be counted: once for a transaction,
// however many statements' observers learn of it.
func (r report) counts() bool { return r.unit == nil || !r.unit.part }

// Floor implements rywpgx.Observer.
func (r report) Floor() bool {
	return r.h.layer.keepsFloors() && (r.unit == nil || r.unit.observers.others(r.unit.own))
}

// Report implements rywpgx.Observer.
func (r report) Report(e rywpgx.Event) {
	l, key := r.h.layer, r.h.group.Key()
	if e.Placed() {
		key = keyOf(r.h.group, e.Sample)
		r.h.group.Primary.Publish(e.Sample)
		r.h.group.Primary.Heard(e.Sample)
	}
	switch {
	case e.Outcome == rywpgx.Committed && e.Placed():
		if r.counts() {
			l.count.captures.Add(1)
		}
		r.each(func(s *session.Session) { s.Advance(key, e.Sample.Position, e.Sample.Begun, true) })
	case e.Outcome == rywpgx.Committed || e.Outcome == rywpgx.Indeterminate:
		if r.counts() {
			l.missed(r.h.group, e)
		}
		timeline := r.h.group.Timeline()
		r.each(func(s *session.Session) { s.MarkWroteOn(key, timeline) })
	case !l.keepsFloors():
	case e.Placed() && r.unit != nil && r.unit.renew:
		r.each(func(s *session.Session) { s.Renew(key, e.Sample.Position, e.Sample.Begun) })
	case e.Placed():
		r.each(func(s *session.Session) { s.Advance(key, e.Sample.Position, e.Sample.Begun, false) })
	case r.unit != nil && r.unit.pure && r.unit.owed.CompareAndSwap(0, owed):
	default:
		l.count.readMarks.Add(1)
		r.each(func(s *session.Session) { s.MarkSawPrimary(key) })
	}
	if r.unit != nil {
		r.unit.finish()
	}
}

// missed counts a write without a position.
func (l *Layer) missed(g *watcher.Group, e rywpgx.Event) {
	l.count.writeMarks.Add(1)
	if len(g.Replicas()) > 0 && e.Outcome == rywpgx.Committed {
		l.count.failures.Add(1)
		l.tell(Event{Kind: CaptureFailed, Node: g.Primary.Name(), Err: e.Err})
	}
}

// replicaHooks is what the driver of a replica's pool asks.
type replicaHooks struct {
	layer *Layer
	node  *watcher.Node
}

// ReplicaHooks returns what a replica's pool is to be bound to, if it is one of
// rywpgx: its connections are admitted, and nothing on them is captured.
func (l *Layer) ReplicaHooks(n *watcher.Node) rywpgx.Hooks { return replicaHooks{l, n} }

// Admit implements rywpgx.Hooks.
func (h replicaHooks) Admit(ctx context.Context, conn *pgx.Conn) (*watcher.Probe, error) {
	if h.layer.plain() {
		return nil, nil
	}
	return h.node.Prove(ctx, conn)
}

// Admitted implements rywpgx.Hooks.
func (h replicaHooks) Admitted(conn *pgx.Conn) bool { return h.layer.plain() || h.node.Admitted(conn) }

// Pure implements rywpgx.Hooks.
func (h replicaHooks) Pure(sql string) bool { return h.layer.cfg.Classifier.Statement(sql).Pure }

// Observer implements rywpgx.Hooks.
func (replicaHooks) Observer(context.Context) rywpgx.Observer { return nil }

// nobody is the unit of a write that nobody is to learn of.
var nobody = &unit{}

func isSilent(ctx context.Context) bool {
	v := ctxval.From(ctx)
	return v != nil && v.Unit == any(nobody)
}

// observed returns the context that has the driver tell u.
func observed(ctx context.Context, u *unit) context.Context {
	return ctxval.With(ctx, func(v *ctxval.Values) { v.Unit = u })
}

// beginReported begins a transaction whose end the driver reports. It is the
// plain *sql.Tx that libraries look for.
func (p *Pool) beginReported(ctx context.Context, opts *sql.TxOptions, fell func()) (*sql.Tx, error) {
	u := &unit{own: &session.Session{}, observers: observersOf(ctx, beginHint(ctx)), fell: fell}
	u.observers.add(u.own)
	u.write(p.known.Group.Key())
	tx, err := p.DB.BeginTx(observed(ctx, u), opts)
	if err != nil {
		u.finish()
		return nil, err
	}
	reported.add(tx, u)
	u.watch(ctx, p.known.Group.Key())
	return tx, nil
}

// reported finds the unit of a transaction for as long as somebody holds it.
var reported units

type units struct{ m sync.Map } // weak.Pointer[sql.Tx] -> *unit

func (r *units) add(tx *sql.Tx, u *unit) {
	key := weak.Make(tx)
	r.m.Store(key, u)
	runtime.AddCleanup(tx, func(key weak.Pointer[sql.Tx]) { r.m.Delete(key) }, key)
}

func (r *units) of(tx *sql.Tx) *unit {
	if tx == nil {
		return nil
	}
	u, _ := r.m.Load(weak.Make(tx))
	got, _ := u.(*unit)
	return got
}

// token is a mark while the unit is under way, see Tx.token.
func (u *unit) token() token.Token { return u.own.Token() }
