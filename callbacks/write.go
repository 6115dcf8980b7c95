package callbacks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// routeWrite opens the record of a create, update or delete.
func (l *Layer) routeWrite(db *gorm.DB) { l.openWrite(db, !db.SkipDefaultTransaction) }

// routeExec opens the record of Exec, which always goes to the primary.
func (l *Layer) routeExec(db *gorm.DB) {
	if db.Error == nil && !db.DryRun && !inTransaction(db.Statement.ConnPool) {
		toSource(db)
	}
	l.openWrite(db, false)
}

// toSource has dbresolver choose the pool that the statement would write to.
func toSource(db *gorm.DB) {
	if f := db.Callback().Create().Get(resolveName); f != nil {
		f(db)
	}
}

func inTransaction(pool gorm.ConnPool) bool {
	_, ok := pool.(gorm.TxCommitter)
	return ok
}

func (l *Layer) openWrite(db *gorm.DB, implicit bool) {
	if db.Error != nil || db.DryRun {
		return
	}
	stmt := db.Statement
	unprepared(stmt)
	hint := scopes.OnQuery(stmt)
	if err := l.hintError(stmt.Context, hint); err != nil {
		_ = db.AddError(err)
		return
	}
	rec := &Record{stmt: stmt, active: true, running: true, within: inTransaction(stmt.ConnPool)}
	rec.own, rec.part = &session.Session{}, rec.within
	rec.open(stmt.Context)
	rec.implicit = implicit && !rec.within
	if !rec.within {
		rec.source = l.known(db) // as it was chosen: GORM puts another back, and a policy may choose another
	}
	rec.decision.Reason = policy.NotPure
	if rec.within {
		rec.decision.Reason = policy.InTransaction
		if d, ok := DecisionOf(stmt.ConnPool); ok {
			rec.decision = d
		}
	}
	stmt.Context = rec
	if rec.silent = scopes.CaptureOff(stmt); rec.silent {
		rec.values.Unit = nobody
		return
	}
	rec.observers = observersOf(rec.Context, hint)
	rec.observers.add(rec.own)
}

// capture runs behind GORM's own commit.
func (l *Layer) capture(db *gorm.DB) {
	rec := ownRecord(db.Statement)
	if rec == nil || !rec.active {
		return
	}
	rec.active, rec.running, rec.implicit = false, false, false
	defer explained(db, rec.parent)
	if rec.silent {
		return
	}
	source := rec.source
	if source == nil {
		source = l.sourceOf(db)
	}
	g := source.Group
	rec.key = g.Key()
	switch {
	case source.Reports && rec.within:
		l.awaitForeign(db, rec, g)
	case source.Reports:
		// The driver has told the observers.
	case rec.within:
		l.captureWithin(db, rec, g)
	case db.Error != nil:
		l.failed(g, db.Error, &rec.observers)
	case l.pureExec(db):
		l.sawPrimary(g, &rec.observers, rec.own)
	default:
		l.wrote(g, &rec.observers)
	}
}

// pureExec reports whether the statement was an Exec of a pure read.
func (l *Layer) pureExec(db *gorm.DB) bool {
	return db.Statement.SQL.Len() > 0 && l.cfg.Classifier.Statement(db.Statement.SQL.String()).Pure
}

// captureWithin is for a write in a transaction that the statement did not
// begin. Ours captures by itself; GORM's own, around a parent statement, is
// captured by the parent, which resolves the mark that stands until then; any
// other commit cannot be observed.
func (l *Layer) captureWithin(db *gorm.DB, rec *Record, g *watcher.Group) {
	if t := transactionOf(db.Statement.ConnPool); t != nil {
		t.join(&rec.observers)
		return
	}
	if rec.parent.inWrite() {
		key := g.Key()
		rec.observers.each(func(s *session.Session) { s.MarkWrote(key) })
		return
	}
	if !l.awaitForeign(db, rec, g) {
		l.mark(g, &rec.observers)
	}
}

// awaitForeign has the observers wait for the end of a transaction that was begun
// behind the plugin's back.
func (l *Layer) awaitForeign(db *gorm.DB, rec *Record, g *watcher.Group) bool {
	tx := rawTx(db.Statement.ConnPool)
	if tx == nil || reported.of(tx) != nil || rec.parent.inWrite() {
		return false
	}
	l.count.writeMarks.Add(1)
	ended := foreign.of(context.WithoutCancel(rec.Context), tx)
	key := l.keyOfOne(g)
	rec.observers.each(func(s *session.Session) { s.Await(key, ended) })
	return true
}

// keyOfOne is the key of a group, or the zero key, which stands for any cluster, if
// there are several: a transaction that was begun elsewhere does not say where.
func (l *Layer) keyOfOne(g *watcher.Group) token.Key {
	for _, k := range l.cfg.Router.Pools.All() {
		if k.Group != g {
			return token.Key{}
		}
	}
	return g.Key()
}

// rawTx returns the *sql.Tx of a transaction that is not ours.
func rawTx(pool gorm.ConnPool) *sql.Tx {
	switch t := pool.(type) {
	case *sql.Tx:
		return t
	case *gorm.PreparedStmtTX:
		tx, _ := t.Tx.(*sql.Tx)
		return tx
	}
	return nil
}

// sourceOf returns the pool that a statement wrote to. GORM has put the
// configuration's pool back by then; with several sources dbresolver is asked.
func (l *Layer) sourceOf(db *gorm.DB) *policy.Pool {
	probe := throwaway(db)
	toSource(probe)
	if k := l.known(probe); k != nil {
		return k
	}
	return &policy.Pool{Group: l.home}
}

// wrote captures the position of a commit that was acknowledged just now and
// tells the observers, or marks a write for them when it cannot be had.
func (l *Layer) wrote(g *watcher.Group, obs *observers) {
	if l.cfg.LazyCapture || len(g.Replicas()) == 0 {
		l.mark(g, obs)
		return
	}
	defer l.cost.since(mono.Now())
	// Not the caller's context: a cancelled request has committed all the same.
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.cfg.CaptureTimeout,
		fmt.Errorf("capture timeout of %s passed", l.cfg.CaptureTimeout))
	defer cancel()
	was := g.Timeline()
	s, shared, err := g.Primary.SampleShared(ctx)
	if err == nil && was != 0 && s.Position.Timeline > was {
		err = errPromotedMeanwhile
	}
	if err != nil {
		l.count.failures.Add(1)
		l.tell(Event{Kind: CaptureFailed, Node: g.Primary.Name(), Err: err})
		l.markOn(g, was, obs)
		return
	}
	l.count.captures.Add(1)
	if shared {
		l.count.shared.Add(1)
	}
	key := keyOf(g, s)
	obs.each(func(ses *session.Session) { ses.Advance(key, s.Position, s.Begun, true) })
}

// keyOf is the key of the cluster that a sample of a group's primary is of: the
// group's own may be of another one by now.
func keyOf(g *watcher.Group, s watcher.Sample) token.Key {
	return token.Key{System: s.System, Name: g.Key().Name}
}

// errPromotedMeanwhile says that the position is of another server than the commit,
// or of one that has lost it, for all that is known.
var errPromotedMeanwhile = errors.New("another server was promoted meanwhile")

// mark records a write whose position is not known.
func (l *Layer) mark(g *watcher.Group, obs *observers) { l.markOn(g, g.Timeline(), obs) }

// markOn is mark for a write on a timeline; zero is not known.
func (l *Layer) markOn(g *watcher.Group, timeline uint32, obs *observers) {
	l.count.writeMarks.Add(1)
	key := g.Key()
	obs.each(func(ses *session.Session) { ses.MarkWroteOn(key, timeline) })
}

// sawPrimary records a read of the primary and brings its floor along: one
// shared position query, begun after the read. Where nobody but the statement
// itself would learn of it, a mark does. It reports whether a position was wanted
// and could not be had.
func (l *Layer) sawPrimary(g *watcher.Group, obs *observers, own *session.Session) (missed bool) {
	if !l.keepsFloors() {
		return false
	}
	key := g.Key()
	if len(g.Replicas()) > 0 && obs.others(own) {
		s, err := l.positionAfterRead(g)
		if err == nil {
			obs.each(func(ses *session.Session) { ses.Advance(keyOf(g, s), s.Position, s.Begun, false) })
			return false
		}
		missed = true
	}
	l.markSeen(key, obs)
	return missed
}

// positionAfterRead asks a primary that has answered a read. If the watcher has lost
// it meanwhile, it is asked on a new connection.
func (l *Layer) positionAfterRead(g *watcher.Group) (watcher.Sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CaptureTimeout)
	defer cancel()
	s, err := g.Primary.Sample(ctx)
	if err != nil && ctx.Err() == nil {
		g.Primary.Redial()
		s, err = g.Primary.Sample(ctx)
	}
	return s, err
}

// failed records a write that returned an error. One that was certainly undone
// has still read the primary: who was told of a duplicate key must find that
// row. Any other may have been committed.
func (l *Layer) failed(g *watcher.Group, err error, obs *observers) {
	key := g.Key()
	if Undone(err) {
		if !l.keepsFloors() {
			return
		}
		l.markSeen(key, obs)
		return
	}
	l.mark(g, obs)
}

// Undone reports whether err proves that what it is about was not committed: by
// its SQLSTATE (rywpgx.CertainlyUndone has the classes), or because GORM or pgx
// raised it before the statement was sent.
func Undone(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return rywpgx.CertainlyUndone(err)
	}
	return isBeforeSending(err)
}

func isBeforeSending(err error) bool {
	for _, e := range []error{
		gorm.ErrInvalidTransaction,
		gorm.ErrMissingWhereClause, gorm.ErrUnsupportedRelation, gorm.ErrPrimaryKeyRequired,
		gorm.ErrModelValueRequired, gorm.ErrInvalidData, gorm.ErrInvalidField, gorm.ErrEmptySlice,
		gorm.ErrInvalidValue, gorm.ErrInvalidValueOfLength,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return pgconn.SafeToRetry(err)
}
