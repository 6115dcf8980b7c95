package callbacks

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
)

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
	hint := firstHint(c.hint, ctxHint)
	if hint != nil {
		q.Level, q.MaxStaleness = hint.Level, hint.MaxStaleness
		c.observers.addAll(hint.Sessions)
	}
	switch {
	case hint != nil && hint.Level == policy.StaleOK && c.hint == nil && ses != nil:
		// In the context, StaleOK never drops what the session must see.
		q.Level = policy.ReadYourWrites
		c.honour(ses)
	case hint != nil && hint.Level == policy.ReadYourWrites:
		c.honour(hint.Sessions...)
		c.honour(ses)
	case hint != nil:
	case ses != nil:
		q.Level = policy.ReadYourWrites
		c.honour(ses)
	case parent != nil && parent.own != nil:
		// The context of a write: what it wrote is to be seen.
		q.Level = policy.ReadYourWrites
		c.honour(parent.own)
	default:
		q.Level = c.defaultLevel()
	}
	if c.forcedToSource() {
		q.Level, c.decision.Reason = policy.Strong, policy.ByStrong
	}
	c.observers.addAll(q.Sessions)
	c.observers.add(ses)
	c.observers.add(sink)
	return parent
}

// honour has the read see what sessions must see.
func (c *call) honour(sessions ...*session.Session) {
	for _, s := range sessions {
		if s != nil {
			c.request.Sessions = append(c.request.Sessions, s)
		}
	}
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
