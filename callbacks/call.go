package callbacks

import (
	"context"
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// call is one statement of the query and row processors: a pool that decides
// where the statement goes when it gets its text. It is reused.
type call struct {
	layer *Layer
	db    *gorm.DB
	base  gorm.ConnPool // what the statement was given
	known *policy.Pool  // what is known of base
	from  *policy.Pool  // what is known of target, if that is a primary's
	hint  *policy.Hint  // on the query

	request   policy.Request
	decision  policy.Decision
	observers observers
	target    gorm.ConnPool
	traced    any              // what dbresolver's trace mode calls a replica
	own       *session.Session // of a write
	unit      *unit            // if the driver reports the end
	keepsOpen bool             // the caller reads the rows
	lookup    bool             // GORM is about to write
	silent    bool             // nobody is to learn of a write
	pure      bool
	aged      bool
	sent      bool
	failed    error // of a row, which GORM does not look at
	missed    bool  // the primary's position after the read is not known
	lost      bool  // the server went away before the first row
	retried   bool  // the primary has failed
	retries   int   // how often it was sent again
	tried     *policy.Replica
	fell      bool // two replicas have failed
	replan    bool // a prepared plan went stale: nothing prepared is used
}

func (c *call) release() {
	l := c.layer
	c.request.Reset() // which ends a read that fell back
	c.db, c.base, c.known, c.from, c.hint = nil, nil, nil, nil, nil
	c.decision, c.observers = policy.Decision{}, observers{}
	c.target, c.own, c.unit = nil, nil, nil
	c.keepsOpen, c.lookup, c.silent = false, false, false
	c.pure, c.aged, c.sent = false, false, false
	c.failed, c.traced = nil, nil
	c.missed, c.lost, c.retried, c.replan = false, false, false, false
	c.retries, c.tried, c.fell = 0, nil, false
	l.calls.Put(c)
}

// QueryContext implements gorm.ConnPool.
func (c *call) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := c.decide(ctx, query); err != nil {
		return nil, err
	}
	rows, err := c.query(ctx, query, args)
	for err != nil && c.again(ctx, query, err) {
		text, with := c.replanned(query, args)
		rows, err = c.query(ctx, text, with)
	}
	c.lost = err != nil && isGone(err)
	c.answered(ctx)
	return rows, err
}

func (c *call) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if err := c.guarded(ctx); err != nil {
		return nil, err
	}
	switch {
	case c.silent && !c.pure:
		ctx = observed(ctx, nobody)
	case c.outlives():
		return c.heldRows(ctx, query, args)
	case c.unit != nil:
		rows, err := c.target.QueryContext(observed(ctx, c.unit), query, args...)
		if err != nil {
			c.unit.finish()
		}
		return rows, err
	case c.keepsOpen && !c.pure && c.layer.ctx.Err() == nil: // after Close nobody waits for rows
		return c.openRows(ctx, query, args)
	case c.decision.Reason == policy.Checked:
		rows, _, err := rywpgx.Query(ctx, c.target, c.accept, query, args...)
		return rows, err
	}
	return c.target.QueryContext(ctx, query, args...)
}

// accept takes the position that came with a checked read.
func (c *call) accept(s watcher.Sample) error {
	err := c.request.Accept(c.decision.Replica, s)
	if err == nil {
		c.decision.Have, c.decision.Age = s.Position, 0
	}
	return err
}

// QueryRowContext implements gorm.ConnPool.
func (c *call) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := c.decide(ctx, query); err != nil {
		return failrow.New(err)
	}
	row := c.queryRow(ctx, query, args)
	for row.Err() != nil && c.again(ctx, query, row.Err()) {
		text, with := c.replanned(query, args)
		row = c.queryRow(ctx, text, with)
	}
	c.failed = row.Err()
	c.lost = c.failed != nil && isGone(c.failed)
	c.answered(ctx)
	return row
}

func (c *call) queryRow(ctx context.Context, query string, args []any) *sql.Row {
	if err := c.guarded(ctx); err != nil {
		return failrow.New(err)
	}
	switch {
	case c.silent && !c.pure:
		ctx = observed(ctx, nobody)
	case c.outlives():
		return c.heldRow(ctx, query, args)
	case c.unit != nil:
		row := c.target.QueryRowContext(observed(ctx, c.unit), query, args...)
		if row.Err() != nil {
			c.unit.finish()
		}
		return row
	case c.keepsOpen && !c.pure && c.layer.ctx.Err() == nil: // after Close nobody waits for rows
		return c.openRow(ctx, query, args)
	case c.decision.Reason == policy.Checked:
		row, _, err := rywpgx.QueryRow(ctx, c.target, c.accept, query, args...)
		if row == nil {
			return failrow.New(err)
		}
		return row
	}
	return c.target.QueryRowContext(ctx, query, args...)
}

// ExecContext implements gorm.ConnPool. Neither processor uses it.
func (c *call) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := c.decide(ctx, query); err != nil {
		return nil, err
	}
	return c.target.ExecContext(ctx, query, args...)
}

// PrepareContext implements gorm.ConnPool. Neither processor uses it.
func (c *call) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := c.decide(ctx, query); err != nil {
		return nil, err
	}
	return c.target.PrepareContext(ctx, query)
}

// GetDBConn implements gorm.GetDBConnector.
func (c *call) GetDBConn() (*sql.DB, error) {
	db, _ := unwrap(c.base)
	return db, nil
}

// tell has the sessions learn of what was sent.
func (c *call) tell(err error, rec *Record) {
	if rep := c.decision.Replica; rep != nil {
		rep.End()
		rec.key = rep.Node.Group().Key()
		if c.decision.Stale {
			c.observers.each((*session.Session).NoteStale)
		}
		if !c.layer.keepsFloors() {
			return
		}
		at := mono.Now()
		c.observers.each(func(s *session.Session) { s.ReadNode(rec.key, c.decision.Incarnation, at) })
		return
	}
	l, g := c.layer, c.from.Group
	rec.key = g.Key()
	switch {
	case c.silent && !c.pure:
	case c.pure && c.lost: // nothing was seen
	case c.unit != nil:
		rec.own = c.own // the driver has told, or will when the rows are closed
		if c.unit.owed.Swap(told) == owed {
			c.missed = true
			l.markSeen(rec.key, &c.observers)
		}
	case c.pure && c.aged:
		l.renew(g, &c.observers)
	case c.pure:
		c.missed = l.sawPrimary(g, &c.observers, nil)
	default:
		c.tellWrite(err, rec)
	}
}

// tellWrite is for a statement that may have written.
func (c *call) tellWrite(err error, rec *Record) {
	l, g := c.layer, c.from.Group
	if c.own != nil {
		rec.own = c.own // told when the rows are closed
		return
	}
	rec.own = &session.Session{}
	rec.observers.add(rec.own)
	switch {
	case err != nil:
		l.failed(g, err, &rec.observers)
	default:
		l.wrote(g, &rec.observers)
	}
}

// renew replaces what a token over its maximal age held.
func (l *Layer) renew(g *watcher.Group, obs *observers) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.CaptureTimeout)
	defer cancel()
	s, err := g.Primary.Sample(ctx)
	if err != nil {
		l.sawPrimary(g, obs, nil)
		return
	}
	obs.each(func(ses *session.Session) { ses.Renew(keyOf(g, s), s.Position, s.Begun) })
}
