package callbacks

import (
	"context"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/plugin/dbresolver"
)

// decide chooses the target. The error is that of the hint, which may have come with
// a condition that was built only now.
func (c *call) decide(ctx context.Context, query string) error {
	if c.sent {
		return nil // a user's callback sent something by itself
	}
	c.hint = scopes.OnQuery(c.db.Statement)
	if err := c.layer.hintError(ctx, c.hint); err != nil {
		return err
	}
	c.sent = true
	c.pure = c.layer.cfg.Classifier.Statement(query).Pure
	parent := c.asked(ctx)
	switch {
	case c.layer.plain():
		c.leave()
	case !c.pure:
		c.toPrimary(policy.NotPure)
	case parent.inWrite():
		c.toPrimary(policy.InWrite)
	case c.lookup:
		c.toPrimary(policy.LookupBeforeWrite)
	case c.request.Level == policy.Strong:
		c.toPrimary(c.decision.Reason)
	default:
		c.follow(parent)
		c.request.Set = c.set()
		c.route(ctx)
	}
	return c.decision.Err
}

// writesNothing reports whether a text is provably a pure read or a savepoint.
func (l *Layer) writesNothing(query string) bool {
	return l.cfg.Classifier.Statement(query).Pure || isSavepoint(query)
}

func isSavepoint(query string) bool {
	for _, start := range [...]string{"savepoint ", "release ", "rollback to "} {
		if len(query) > len(start) && strings.EqualFold(query[:len(start)], start) {
			return !strings.Contains(query, ";")
		}
	}
	return false
}

// asked finds out what the read asks for and who is to learn of it.
func (c *call) asked(ctx context.Context) (parent *Record) {
	why, parent := c.layer.precedence(ctx, c.hint, has(c.db.Statement, dbresolverRead), &c.request, &c.observers)
	if has(c.db.Statement, dbresolverWrite) {
		c.request.Level, why = policy.Strong, policy.ByStrong
	}
	c.decision.Reason = why
	return parent
}

// precedence fills in what a read asks for and who is to learn of it: the query's
// hint, the context's, the session, the default, which Clauses(dbresolver.Read)
// overrides. The reason is for the case that this is Strong.
func (l *Layer) precedence(ctx context.Context, query *policy.Hint, toReplica bool, q *policy.Request, obs *observers) (why policy.Reason, parent *Record) {
	ses, ctxHint, sink, parent := valuesOf(ctx)
	why = policy.ByStrong
	hint := firstHint(query, ctxHint)
	if hint != nil {
		q.Level, q.MaxStaleness = hint.Level, hint.MaxStaleness
		obs.addAll(hint.Sessions)
	}
	switch {
	case hint != nil && hint.Level == policy.StaleOK && query == nil && ses != nil:
		// In the context, StaleOK never drops what the session must see.
		q.Level = policy.ReadYourWrites
		q.Honour(ses)
	case hint != nil && hint.Level == policy.ReadYourWrites:
		q.Honour(hint.Sessions...)
		q.Honour(ses)
	case hint != nil:
	case ses != nil:
		q.Level = policy.ReadYourWrites
		q.Honour(ses)
	case parent != nil && parent.own != nil:
		// The context of a write: what it wrote is to be seen.
		q.Level = policy.ReadYourWrites
		q.Honour(parent.own)
	case toReplica || l.cfg.Router.Settings().Default == policy.DefaultStaleOK:
		q.Level = policy.StaleOK
	default:
		q.Level, why = policy.Strong, policy.ByDefault
	}
	obs.addAll(q.Sessions)
	obs.add(ses)
	obs.add(sink)
	return why, parent
}

func firstHint(query, ctx *policy.Hint) *policy.Hint {
	if query != nil {
		return query
	}
	return ctx
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
	probe.Statement.Settings.Store(dbresolverRead, struct{}{})
	toReplica(probe)
	c.traced = probe.Statement.Context.Value(resolverMode)
	if known := c.layer.known(probe); known != nil {
		return known.Set
	}
	return nil
}

// resolverMode is where dbresolver's trace mode says what it took a statement for.
const resolverMode = dbresolver.ResolverModeKey("dbresolver:resolver_mode_key")

func (c *call) route(ctx context.Context) {
	c.take(c.layer.cfg.Router.Decide(ctx, &c.request))
}

// take has the read go where it was decided; one that failed goes nowhere.
func (c *call) take(d policy.Decision) {
	c.decision = d
	c.aged = d.Reason == policy.TokenAged
	if rep := d.Replica; rep != nil {
		c.unit = nil // of a try on the primary, which has ended
		c.target = c.layer.poolOf(c, rep)
		if c.traced != nil {
			c.db.Statement.Context = context.WithValue(c.db.Statement.Context, resolverMode, c.traced)
		}
		rep.Begin()
		return
	}
	if d.Err == nil {
		c.toPrimary(d.Reason)
	}
}

func (c *call) toPrimary(why policy.Reason) {
	c.decision.Replica, c.decision.Reason, c.decision.Level = nil, why, c.request.Level
	c.decision.Stale = false
	c.target, c.from = c.base, c.known
	if c.known.Replica != nil {
		stmt := c.db.Statement
		toSource(c.db)
		if c.from = c.layer.known(c.db); c.from == nil {
			c.from = &policy.Pool{Group: c.known.Group}
		}
		c.target, stmt.ConnPool = stmt.ConnPool, c
	}
	if c.replan {
		c.target = bare(c.target)
	}
	if c.silent && !c.pure {
		return
	}
	if c.from.Reports {
		c.listen()
	}
}

// listen has the driver tell the observers what becomes of the statement.
func (c *call) listen() {
	c.unit = &unit{renew: c.aged, pure: c.pure}
	if !c.pure {
		c.own = &session.Session{}
		c.observers.add(c.own)
		c.unit.own = c.own
	}
	c.unit.observers = c.observers
	if c.keepsOpen && !c.pure {
		c.unit.write(c.from.Group.Key())
	}
}
