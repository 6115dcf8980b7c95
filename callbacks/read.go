package callbacks

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
)

// routeRead puts a pool in place that decides when the text is known. A
// transaction, a *sql.Conn and a pool that is not known are left alone.
func (l *Layer) routeRead(db *gorm.DB) { l.route(db, false) }

// routeRow is routeRead for Row and Rows, whose result the caller reads.
func (l *Layer) routeRow(db *gorm.DB) { l.route(db, true) }

func (l *Layer) route(db *gorm.DB, keepsOpen bool) {
	if db.Error != nil || db.DryRun {
		return
	}
	stmt := db.Statement
	hint := scopes.OnQuery(stmt)
	if err := hintError(stmt.Context, hint); err != nil {
		_ = db.AddError(err)
		if rows, ok := db.Get("rows"); ok && rows == false {
			stmt.Dest = failrow.New(err)
		}
		return
	}
	if inTransaction(stmt.ConnPool) {
		return
	}
	known := l.known(db)
	if known == nil {
		return
	}
	c := l.calls.Get().(*call)
	c.db, c.base, c.known, c.hint, c.keepsOpen = db, stmt.ConnPool, known, hint, keepsOpen
	stmt.ConnPool = c
}

// hintError is the error of the hint that applies: the query's or else the
// context's.
func hintError(ctx context.Context, query *policy.Hint) error {
	_, ctxHint, _, _ := valuesOf(ctx)
	if h := firstHint(query, ctxHint); h != nil {
		return h.Err
	}
	return nil
}

// observe runs behind the query, before preloads: the sessions learn of the
// read, and the record replaces the statement's context.
func (l *Layer) observe(db *gorm.DB) {
	c, ok := db.Statement.ConnPool.(*call)
	if !ok {
		return
	}
	rec := &Record{decision: c.decision, active: true}
	rec.observers = c.observers
	rec.open(db.Statement.Context)
	db.Statement.Context = rec
	// Not the pool that served: a transaction that a hook or a batch begins on
	// this statement is for the primary.
	db.Statement.ConnPool = db.ConnPool
	if c.sent {
		c.tell(db.Error, rec)
		l.cfg.Router.Counted(c.decision)
	}
	c.release()
}

// end runs behind preloads and AfterFind hooks.
func (l *Layer) end(db *gorm.DB) {
	if rec, ok := db.Statement.Context.(*Record); ok {
		rec.active = false
	}
}
