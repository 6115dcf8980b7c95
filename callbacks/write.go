package callbacks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/policy"
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
	rec := &Record{own: &session.Session{}, active: true, writing: true, within: inTransaction(stmt.ConnPool)}
	rec.open(stmt.Context)
	rec.implicit = implicit && !rec.within
	rec.decision.Reason = policy.NotPure
	if rec.within {
		rec.decision.Reason = policy.InTransaction
	}
	hint := scopes.OnQuery(stmt)
	if err := hintError(rec.Context, hint); err != nil {
		_ = db.AddError(err)
	}
	rec.observeBy(hint)
	stmt.Context = rec
}

// observeBy collects who learns of the statement.
func (r *Record) observeBy(hint *policy.Hint) {
	ses, ctxHint, sink, _ := valuesOf(r.Context)
	for _, s := range [...]*session.Session{ses, sink, r.own} {
		if s != nil {
			r.observers.add(s)
		}
	}
	switch {
	case hint != nil && hint.Session != nil:
		r.observers.add(hint.Session)
	case hint == nil && ctxHint != nil && ctxHint.Session != nil:
		r.observers.add(ctxHint.Session)
	}
}

// capture runs behind GORM's own commit.
func (l *Layer) capture(db *gorm.DB) {
	rec, ok := db.Statement.Context.(*Record)
	if !ok || !rec.active {
		return
	}
	rec.active, rec.writing, rec.implicit = false, false, false
	switch {
	case rec.within:
		l.captureWithin(db, rec)
	case db.Error != nil:
		l.failed(l.groupOf(db), db.Error, &rec.observers)
	case l.pureExec(db):
		l.sawPrimary(l.groupOf(db), &rec.observers, rec.own)
	default:
		rec.key = l.wrote(l.groupOf(db), &rec.observers)
	}
}

// pureExec reports whether the statement was an Exec of a pure read.
func (l *Layer) pureExec(db *gorm.DB) bool {
	return db.Statement.SQL.Len() > 0 && l.cfg.Classifier.Statement(db.Statement.SQL.String()).Pure
}

// captureWithin is for a write in a transaction that the statement did not
// begin. Ours captures by itself; GORM's own, around a parent statement, is
// captured by the parent; any other commit cannot be observed.
func (l *Layer) captureWithin(db *gorm.DB, rec *Record) {
	if t := transactionOf(db.Statement.ConnPool); t != nil {
		t.join(&rec.observers)
		return
	}
	if rec.parent.inWrite() {
		return
	}
	if tx := rawTx(db.Statement.ConnPool); tx != nil {
		key := l.groupOf(db).Key()
		l.marks.Add(1)
		rec.observers.each(func(s *session.Session) { s.Await(key, ended(tx)) })
		return
	}
	l.mark(l.groupOf(db), &rec.observers)
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

// groupOf returns the cluster that a statement's pool leads to. GORM has put the
// configuration's pool back by then; with several sources dbresolver is asked.
func (l *Layer) groupOf(db *gorm.DB) *watcher.Group {
	probe := throwaway(db)
	toSource(probe)
	if k := l.known(probe); k != nil {
		return k.Group
	}
	return l.home
}

// wrote captures the position of a commit that was acknowledged just now and
// tells the observers, or marks a write for them when it cannot be had.
func (l *Layer) wrote(g *watcher.Group, obs *observers) token.Key {
	if len(g.Replicas()) == 0 {
		return l.mark(g, obs)
	}
	// Not the caller's context: a cancelled request has committed all the same.
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.cfg.CaptureTimeout,
		fmt.Errorf("capture timeout of %s passed", l.cfg.CaptureTimeout))
	defer cancel()
	s, err := g.Primary.Sample(ctx)
	if err != nil {
		l.captureFailures.Add(1)
		l.cfg.Log.Warn("gorm-ryw: position of a write not captured, marked instead", "error", err)
		return l.mark(g, obs)
	}
	l.captures.Add(1)
	key := g.Key()
	obs.each(func(ses *session.Session) { ses.Advance(key, s.Position, s.Begun, true) })
	return key
}

// mark records a write whose position is not known.
func (l *Layer) mark(g *watcher.Group, obs *observers) token.Key {
	l.marks.Add(1)
	key := g.Key()
	obs.each(func(ses *session.Session) { ses.MarkWrote(key) })
	return key
}

// sawPrimary records a read of the primary and brings its floor along: one
// shared position query, begun after the read. Where nobody but the statement
// itself would learn of it, a mark does.
func (l *Layer) sawPrimary(g *watcher.Group, obs *observers, own *session.Session) {
	key := g.Key()
	if len(g.Replicas()) > 0 && obs.others(own) {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CaptureTimeout)
		defer cancel()
		if s, err := g.Primary.Sample(ctx); err == nil {
			obs.each(func(ses *session.Session) { ses.Advance(g.Key(), s.Position, s.Begun, false) })
			return
		}
	}
	obs.each(func(ses *session.Session) { ses.MarkSawPrimary(key) })
}

// failed records a write that returned an error. One that was certainly undone
// has still read the primary: who was told of a duplicate key must find that
// row. Any other may have been committed.
func (l *Layer) failed(g *watcher.Group, err error, obs *observers) {
	key := g.Key()
	if Undone(err) {
		obs.each(func(ses *session.Session) { ses.MarkSawPrimary(key) })
		return
	}
	l.mark(g, obs)
}

// Undone reports whether err proves that what it is about was not committed. An
// error without SQLSTATE proves nothing: the connection may have been lost
// between the commit and its acknowledgement. Of the SQLSTATE classes only those
// of errors that abort a statement or transaction count; a cancelled or
// terminated wait for a synchronous standby (57) comes after the commit.
// Source: PostgreSQL manual, appendix A and 27.2.8.
func Undone(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return errors.Is(err, gorm.ErrInvalidTransaction) || isBeforeSending(err)
	}
	const unknownOutcome = "40003"
	if pg.Code == unknownOutcome || len(pg.Code) != 5 {
		return false
	}
	return strings.Contains("0A 20 21 22 23 24 25 26 28 2B 2F 34 38 39 3B 3D 3F 40 42 44 54 55 P0", pg.Code[:2])
}

// isBeforeSending reports errors that GORM itself raises before it sends a
// statement, and pgx's for a statement that was not sent.
func isBeforeSending(err error) bool {
	for _, e := range []error{
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
