package rywpgx

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The transaction status that a server reports with ReadyForQuery.
const idle = 'I' // not in a transaction

var noTag pgconn.CommandTag

// link is one connection of a bound pool: it follows what is done on it, one
// operation at a time, and the transaction that is open. It belongs to whoever
// uses the connection.
type link struct {
	sealed  atomic.Bool // the connection is open, and what follows does not change
	tap     *tap
	conn    *pgx.Conn
	binding *binding // that it was admitted under
	hooks   Hooks    // nil: nothing is asked or told
	timeout time.Duration
	probe   *watcher.Probe // nil: nothing is asked

	op  operation
	tx  unit // the transaction that is open, if one is
	ask *question
}

// operation is one call of pgx from start to end.
type operation struct {
	active bool
	inTx   bool // it began in a transaction
	kind   textKind
	pure   bool
	alone  unit      // it, if it is not part of a transaction
	q      *question // what was to go with it
}

// unit is what the server commits as a whole.
type unit struct {
	observers []Observer
	wrote     bool
}

func (u *unit) join(o Observer) {
	if o == nil || o == Ignored {
		return
	}
	for _, have := range u.observers {
		if have == o {
			return
		}
	}
	u.observers = append(u.observers, o)
}

// wanted reports whether the position is.
func (u *unit) wanted() bool {
	if u.wrote {
		return len(u.observers) > 0
	}
	for _, o := range u.observers {
		if o.Floor() {
			return true
		}
	}
	return false
}

func (u *unit) report(e Event) {
	for _, o := range u.observers {
		o.Report(e)
	}
}

func (l *link) inTx() bool { return l.conn.PgConn().TxStatus() != idle }

// canPlace reports whether positions of writes can be asked for.
func (l *link) canPlace() bool { return l.probe != nil && !l.probe.Last().Standby }

// begin is called before anything of a statement is sent.
func (l *link) begin(ctx context.Context, sql string, pure bool) {
	l.start(ctx, kindOf(sql), pure)
	if c := checkOf(ctx); c != nil && pure && !l.op.inTx && l.probe != nil {
		l.check(c)
	} else if l.op.followed() && l.op.unit(l).wanted() && l.canPlace() {
		l.attach(false, nil)
	}
}

// start notes who observes what.
func (l *link) start(ctx context.Context, kind textKind, pure bool) {
	l.op = operation{active: true, kind: kind, pure: pure, inTx: l.inTx(), alone: l.op.alone.cleared()}
	l.tap.busy.Store(true)
	foreign := l.tap.foreign.Swap(false)
	u := l.op.unit(l)
	o := l.hooks.Observer(ctx)
	wrote := o != Ignored && !pure && (kind == plainText || kind == mixedText)
	u.join(o)
	u.wrote = u.wrote || l.op.inTx && foreign || wrote
}

func (u unit) cleared() unit {
	clear(u.observers)
	return unit{observers: u.observers[:0]}
}

// unit is what the operation is part of.
func (o *operation) unit(l *link) *unit {
	if o.inTx {
		return &l.tx
	}
	return &o.alone
}

// followed reports whether another message may go right behind: when it arrives,
// whatever the operation did is committed, and no transaction is open that it
// would become part of.
func (o *operation) followed() bool {
	if o.inTx {
		return o.ends()
	}
	return o.pure || o.kind == plainText
}

// ends reports whether the operation ends a transaction without beginning another.
func (o *operation) ends() bool { return o.kind == commitText || o.kind == rollText }

// mayEnd reports whether the transaction may have ended even if the connection
// broke.
func (o *operation) mayEnd() bool {
	return o.ends() || o.kind == chainText || o.kind == mixedText
}

// attach has the position asked for together with the operation.
func (l *link) attach(first bool, settle func()) {
	if l.ask == nil || l.ask.open() {
		l.ask = &question{} // the answer to the old one is late
	}
	l.ask.prepare(l.probe.Question(), first, settle)
	l.op.q = l.ask
	l.tap.ask.Store(l.ask)
}

// end is called when everything of the operation was received.
func (l *link) end(tag pgconn.CommandTag, err error) {
	if !l.op.active {
		return
	}
	l.op.active = false
	l.tap.busy.Store(false)
	l.tap.ask.Store(nil) // if nothing was sent that it could go with
	closed := l.conn.IsClosed()
	open := l.inTx() && !closed
	switch {
	case !l.op.inTx && open:
		l.opened()
	case !l.op.inTx:
		l.finish(&l.op.alone, tag, err)
	case open && l.op.kind == chainText && err == nil:
		l.chained()
	case !open && (!closed || l.op.mayEnd()):
		l.finish(&l.tx, tag, err)
		l.tx = l.tx.cleared()
	}
	l.op.alone = l.op.alone.cleared()
}

// opened is for a statement that left a transaction open.
func (l *link) opened() {
	l.tx, l.op.alone = l.op.alone, l.tx.cleared()
	l.tap.foreign.Store(false)
}

// chained is for COMMIT AND CHAIN and ROLLBACK AND CHAIN: asking for the position
// would be the first statement of the new transaction and take its snapshot.
func (l *link) chained() {
	outcome := Read
	if l.tx.wrote {
		outcome = Committed
	}
	l.tx.report(Event{Outcome: outcome, Err: errNotAsked})
	l.tx.wrote = false
}

// finish reports how a unit of work ended.
func (l *link) finish(u *unit, tag pgconn.CommandTag, err error) {
	s, why := l.collect()
	if len(u.observers) == 0 || l.nothing(u, err) {
		return
	}
	e := Event{Err: err}
	if l.op.inTx && err == nil && l.op.kind == commitText && tag.String() == "ROLLBACK" {
		e.Err = pgx.ErrTxCommitRollback
	}
	e.Outcome = l.outcome(u, e.Err)
	if e.Outcome == Committed && errors.Is(why, errNotAsked) {
		s, why = l.askNow()
	}
	if why == nil {
		e.Sample = s
	} else if e.Err == nil {
		e.Err = why
	}
	u.report(e)
}

// nothing reports whether there is nothing to report of a statement: it was not
// sent, and database/sql will try it elsewhere; or nothing was done that a
// position of this server is wanted for. A transaction is always reported.
func (l *link) nothing(u *unit, err error) bool {
	switch {
	case l.op.inTx:
		return false
	case err != nil && pgconn.SafeToRetry(err):
		return true
	case u.wrote:
		return false
	}
	return l.op.kind == beginText || !u.wanted() || l.probe != nil && l.probe.Last().Standby
}

// outcome says what became of a unit.
func (l *link) outcome(u *unit, err error) Outcome {
	switch {
	case !u.wrote:
		return Read
	case l.op.kind == rollText:
		return Undone
	case err == nil:
		return Committed
	case l.op.q != nil && !l.op.q.sent, CertainlyUndone(err):
		return Undone
	}
	return Indeterminate
}

// collect waits for the answer to the operation's question and returns it.
func (l *link) collect() (watcher.Sample, error) {
	q := l.op.q
	if q == nil || q.first {
		return watcher.Sample{}, errNotAsked
	}
	if q.open() && !l.conn.IsClosed() {
		if err := l.tap.wait(q, l.conn.PgConn().Conn(), l.timeout); err != nil {
			l.broken(err)
			return watcher.Sample{}, err
		}
	}
	return ofPrimary(q.sample(l.probe))
}

// ofPrimary refuses the position of a standby, to which a connection pooler may
// have moved on.
func ofPrimary(s watcher.Sample, err error) (watcher.Sample, error) {
	if err == nil && s.Standby {
		return watcher.Sample{}, watcher.ErrWrongRole
	}
	return s, err
}

// broken closes the connection if more than time ran out.
func (l *link) broken(err error) {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.conn.Close(ctx) // it is of no use to anybody
}

// askNow is for work that no question could go with: it costs a round trip.
func (l *link) askNow() (watcher.Sample, error) {
	if !l.canPlace() || l.conn.IsClosed() {
		return watcher.Sample{}, errNotAsked
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	return ofPrimary(l.probe.Take(ctx))
}
