package callbacks

import (
	"context"
	"database/sql"
	"errors"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
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

// call is one statement of the query and row processors: a pool that decides
// where the statement goes when it gets its text. It is reused.
type call struct {
	layer *Layer
	db    *gorm.DB
	base  gorm.ConnPool // what the statement was given
	known *policy.Pool  // what is known of base
	hint  *policy.Hint  // on the query

	request   policy.Request
	decision  policy.Decision
	observers observers
	target    gorm.ConnPool
	own       *session.Session // of a write
	unit      *unit            // if the driver reports the end
	keepsOpen bool             // the caller reads the rows
	pure      bool
	aged      bool
	sent      bool
}

func (c *call) release() {
	l := c.layer
	c.request.Reset()
	c.db, c.base, c.known, c.hint = nil, nil, nil, nil
	c.decision, c.observers = policy.Decision{}, observers{}
	c.target, c.own, c.unit = nil, nil, nil
	c.keepsOpen, c.pure, c.aged, c.sent = false, false, false, false
	l.calls.Put(c)
}

// QueryContext implements gorm.ConnPool.
func (c *call) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.decide(ctx, query)
	rows, err := c.query(ctx, query, args)
	for err != nil && c.again(ctx, err) {
		rows, err = c.query(ctx, query, args)
	}
	return rows, err
}

func (c *call) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	switch {
	case c.unit != nil:
		rows, err := c.target.QueryContext(observed(ctx, c.unit), query, args...)
		if err != nil {
			c.unit.finish()
		}
		return rows, err
	case c.keepsOpen && !c.pure:
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
	c.decide(ctx, query)
	row := c.queryRow(ctx, query, args)
	for row.Err() != nil && c.again(ctx, row.Err()) {
		row = c.queryRow(ctx, query, args)
	}
	return row
}

func (c *call) queryRow(ctx context.Context, query string, args []any) *sql.Row {
	switch {
	case c.unit != nil:
		row := c.target.QueryRowContext(observed(ctx, c.unit), query, args...)
		if row.Err() != nil {
			c.unit.finish()
		}
		return row
	case c.keepsOpen && !c.pure:
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
	c.decide(ctx, query)
	return c.target.ExecContext(ctx, query, args...)
}

// PrepareContext implements gorm.ConnPool. Neither processor uses it.
func (c *call) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c.decide(ctx, query)
	return c.target.PrepareContext(ctx, query)
}

// GetDBConn implements gorm.GetDBConnector.
func (c *call) GetDBConn() (*sql.DB, error) {
	db, _ := unwrap(c.base)
	return db, nil
}

// decide chooses the target.
func (c *call) decide(ctx context.Context, query string) {
	if c.sent {
		return // a user's callback sent something by itself
	}
	c.sent = true
	c.pure = c.layer.cfg.Classifier.Statement(query).Pure
	parent := c.precedence(ctx)
	switch {
	case !c.pure:
		c.toPrimary(policy.NotPure)
	case parent.inWrite():
		c.toPrimary(policy.InWrite)
	case c.request.Level == policy.Strong:
		c.toPrimary(c.decision.Reason)
	default:
		c.follow(parent)
		c.request.Set = c.set()
		c.route(ctx)
	}
}

// precedence finds out what the read asks for and who is to learn of it: the
// query's hint, the context's, the session, the default.
func (c *call) precedence(ctx context.Context) (parent *Record) {
	ses, ctxHint, sink, parent := valuesOf(ctx)
	q := &c.request
	c.decision.Reason = policy.ByStrong
	switch hint := firstHint(c.hint, ctxHint); {
	case hint != nil && hint.Level == policy.StaleOK && c.hint == nil && ses != nil:
		// In the context, StaleOK never drops what the session must see.
		q.Level, q.MaxStaleness, q.Sessions[0] = policy.ReadYourWrites, hint.MaxStaleness, ses
	case hint != nil && hint.Level == policy.ReadYourWrites:
		q.Level, q.MaxStaleness, q.Sessions[0], q.Sessions[1] = hint.Level, hint.MaxStaleness, hint.Session, ses
	case hint != nil:
		q.Level, q.MaxStaleness = hint.Level, hint.MaxStaleness
	case ses != nil:
		q.Level, q.Sessions[0] = policy.ReadYourWrites, ses
	case parent != nil && parent.own != nil:
		// The context of a write: what it wrote is to be seen.
		q.Level, q.Sessions[0] = policy.ReadYourWrites, parent.own
	default:
		q.Level = c.defaultLevel()
	}
	if c.forcedToSource() {
		q.Level, c.decision.Reason = policy.Strong, policy.ByStrong
	}
	for _, s := range [...]*session.Session{q.Sessions[0], q.Sessions[1], ses, sink} {
		if s != nil {
			c.observers.add(s)
		}
	}
	return parent
}

func firstHint(query, ctx *policy.Hint) *policy.Hint {
	if query != nil {
		return query
	}
	return ctx
}

func (c *call) defaultLevel() policy.Level {
	if c.layer.cfg.Router.Settings().Default == policy.DefaultStaleOK {
		return policy.StaleOK
	}
	c.decision.Reason = policy.ByDefault
	return policy.Strong
}

// forcedToSource reports Clauses(dbresolver.Write).
func (c *call) forcedToSource() bool {
	_, ok := c.db.Statement.Settings.Load("gorm:db_resolver:write")
	return ok
}

// follow keeps the statements made on behalf of a read on its node.
func (c *call) follow(parent *Record) {
	if parent != nil && parent.active {
		c.request.Prefer = parent.decision.Replica
	}
}

// set returns the replicas the statement may be read from. Where dbresolver took
// a pure read for a write, it is asked what it would do with a read.
func (c *call) set() *policy.Set {
	if c.known.Set != nil {
		return c.known.Set
	}
	toReplica := c.db.Callback().Query().Get(resolveName)
	if toReplica == nil || c.db.Statement.SQL.Len() == 0 {
		return nil
	}
	probe := throwaway(c.db)
	probe.Statement.Settings.Store("gorm:db_resolver:read", struct{}{})
	toReplica(probe)
	if known := c.layer.known(probe); known != nil {
		return known.Set
	}
	return nil
}

func (c *call) route(ctx context.Context) {
	c.decision = c.layer.cfg.Router.Decide(ctx, &c.request)
	c.aged = c.decision.Reason == policy.TokenAged
	if rep := c.decision.Replica; rep != nil {
		c.target = c.layer.poolOf(c, rep)
		rep.Begin()
		return
	}
	c.toPrimary(c.decision.Reason)
}

func (c *call) toPrimary(why policy.Reason) {
	c.decision.Replica, c.decision.Reason, c.decision.Level = nil, why, c.request.Level
	c.target = c.base
	if c.known.Replica != nil {
		stmt := c.db.Statement
		toSource(c.db)
		c.target, stmt.ConnPool = stmt.ConnPool, c
	}
	if pool, _ := unwrap(c.target); pool != nil {
		if k := c.layer.cfg.Router.Pools.Lookup(pool); k != nil && k.Reports {
			c.listen()
		}
	}
}

// listen has the driver tell the observers what becomes of the statement.
func (c *call) listen() {
	c.unit = &unit{renew: c.aged}
	if !c.pure {
		c.own = &session.Session{}
		c.observers.add(c.own)
		c.unit.own = c.own
	}
	c.unit.observers = c.observers
	if c.keepsOpen && !c.pure {
		c.unit.write(c.known.Group.Key())
	}
}

// again decides anew after a replica failed before the first row.
func (c *call) again(ctx context.Context, err error) bool {
	failed := c.decision.Replica
	behind := errors.Is(err, rywpgx.ErrBehind) || errors.Is(err, rywpgx.ErrUnchecked)
	if failed == nil || ctx.Err() != nil || !behind && !worthRetrying(err) {
		return false
	}
	failed.End()
	switch {
	case behind:
		c.request.Checks++
		c.route(ctx)
	case wrote(err):
		c.pure = false
		c.toPrimary(policy.NotPure)
	case c.request.Exclude != nil: // the second one
		c.toPrimary(policy.ReplicaFailed)
	default:
		c.request.Exclude = failed
		c.route(ctx)
	}
	return true
}

// tell has the sessions learn of what was sent.
func (c *call) tell(err error, rec *Record) {
	if rep := c.decision.Replica; rep != nil {
		rep.End()
		rec.key = rep.Node.Group().Key()
		at := mono.Now()
		c.observers.each(func(s *session.Session) { s.ReadNode(rec.key, c.decision.Incarnation, at) })
		return
	}
	l, g := c.layer, c.known.Group
	rec.key = g.Key()
	switch {
	case c.unit != nil:
		rec.own = c.own // the driver has told, or will when the rows are closed
	case c.pure && c.aged:
		l.renew(g, &c.observers)
	case c.pure:
		l.sawPrimary(g, &c.observers, nil)
	default:
		c.tellWrite(err, rec)
	}
}

// tellWrite is for a statement that may have written.
func (c *call) tellWrite(err error, rec *Record) {
	l, g := c.layer, c.known.Group
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
