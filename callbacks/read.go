package callbacks

import (
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/watcher"
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
	if inTransaction(stmt.ConnPool) {
		unprepared(stmt)
		stays(stmt)
		if scopes.CaptureOff(stmt) {
			stmt.Context = observed(stmt.Context, nobody)
		}
		l.refuse(db)
		return
	}
	known := l.known(db)
	if known == nil {
		stays(stmt)
		l.refuse(db)
		return
	}
	c := l.calls.Get().(*call)
	c.db, c.base, c.known, c.keepsOpen = db, stmt.ConnPool, known, keepsOpen
	c.lookup = looksBeforeWriting(stmt, keepsOpen)
	c.silent = scopes.CaptureOff(stmt)
	stmt.ConnPool = c
}

// refuse fails a statement that is not routed and whose hint is in error.
func (l *Layer) refuse(db *gorm.DB) {
	err := l.hintError(db.Statement.Context, scopes.OnQuery(db.Statement))
	if err == nil {
		return
	}
	_ = db.AddError(err)
	if rows, ok := db.Get("rows"); ok && rows == false {
		db.Statement.Dest = failrow.New(err)
	}
}

// observe runs behind the query, before preloads: the sessions learn of the
// read, and the record replaces the statement's context.
func (l *Layer) observe(db *gorm.DB) {
	c, ok := db.Statement.ConnPool.(*call)
	if !ok {
		l.sawElsewhere(db.Statement)
		explained(db, RecordOf(db.Statement.Context))
		return
	}
	rec := &Record{stmt: db.Statement, decision: c.decision, active: true}
	if c.pure || !c.silent {
		rec.observers = c.observers
	}
	rec.open(db.Statement.Context)
	db.Statement.Context = rec
	// Not the pool that served: a transaction that a hook or a batch begins on
	// this statement is for the primary.
	db.Statement.ConnPool = db.ConnPool
	switch {
	case c.sent && c.decision.Err != nil:
		rec.key = c.request.Set.Group.Key()
		l.counted(c)
	case c.sent:
		c.tell(firstError(db.Error, c.failed), rec)
		c.judge()
		rec.decision = c.decision
		l.counted(c)
	}
	c.release()
	explained(db, rec.parent)
}

// counted counts a read that was routed.
func (l *Layer) counted(c *call) {
	g := c.known.Group
	if c.from != nil && c.decision.Replica == nil {
		g = c.from.Group
	}
	l.final(g, &c.decision)
}

// final counts a decision, and tells who is to know of it.
func (l *Layer) final(g *watcher.Group, d *policy.Decision) {
	l.cfg.Router.Counted(g, d)
	if d.Lost {
		l.tell(Event{Kind: PossiblyLost, Node: g.Primary.Name()})
	}
	if d.Reason == policy.Overloaded || d.Reason == policy.ServedStale {
		l.tell(Event{Kind: Shed, Node: g.Primary.Name(), Err: d.Err})
	}
}

// sawElsewhere is for a read on a connection that was left alone: where it leads to
// is not known, but nothing is newer than the primary.
func (l *Layer) sawElsewhere(stmt *gorm.Statement) {
	if _, ok := stmt.ConnPool.(*sql.Conn); !ok {
		return
	}
	obs := observersOf(stmt.Context, scopes.OnQuery(stmt))
	l.markSeen(l.home.Key(), &obs)
}

// end runs behind preloads and AfterFind hooks.
func (l *Layer) end(db *gorm.DB) {
	if rec := ownRecord(db.Statement); rec != nil {
		rec.active = false
	}
}
