package callbacks

import (
	"context"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

// Explained returns a context whose statements are handed to explain when they have
// run, before the call that ran them returns; those that run on their behalf, such as
// preloads and hooks' own, are not.
func Explained(ctx context.Context, explain func(*gorm.DB)) context.Context {
	return ctxval.With(ctx, func(v *ctxval.Values) { v.Explain = explain })
}

// explained hands a statement that has run to whoever wants to know. The parent is
// the record of the one on whose behalf it may have run.
func explained(db *gorm.DB, parent *Record) {
	v := ctxval.From(db.Statement.Context)
	if v == nil || parent != nil && parent.active {
		return
	}
	if explain, ok := v.Explain.(func(*gorm.DB)); ok {
		explain(db)
	}
}

// DecisionAt says where the statement went whose context is ctx, and why, and returns
// its record; nil for one that was left where it was.
func DecisionAt(ctx context.Context) (policy.Decision, *Record) {
	v := ctxval.From(ctx)
	if v == nil {
		return policy.Decision{}, nil
	}
	if d, ok := v.Here.(*policy.Decision); ok {
		return *d, nil
	}
	if r, ok := v.Record.(*Record); ok {
		return r.decision, r
	}
	return policy.Decision{}, nil
}

var (
	inTransactionOfPrimary = &policy.Decision{Reason: policy.InTransaction}
	nobodyKnows            = &policy.Decision{}
)

// stays notes in a statement's context that it stays on what it was given: a
// transaction, or something that nobody knows.
func stays(stmt *gorm.Statement) {
	here := nobodyKnows
	if inTransaction(stmt.ConnPool) {
		here = inTransactionOfPrimary
	}
	if t := transactionOf(stmt.ConnPool); t != nil && t.decision.Replica != nil {
		here = &t.decision
	}
	stmt.Context = ctxval.With(stmt.Context, func(v *ctxval.Values) { v.Here = here })
}

// Hook is called when a routed read was answered, by the goroutine that sent it and
// while the statement's context is still that of whoever traces it. The zero value
// calls nobody. Safe for concurrent use.
type Hook struct {
	f atomic.Pointer[func(context.Context, *policy.Decision)]
}

// Set has f called from now on. Nil: nobody is.
func (h *Hook) Set(f func(context.Context, *policy.Decision)) {
	if f == nil {
		h.f.Store(nil)
		return
	}
	h.f.Store(&f)
}

// answered tells who watches reads.
func (c *call) answered(ctx context.Context) {
	c.decision.Retries, c.decision.Tried = c.retries, c.tried
	if c.layer.cfg.OnRead == nil {
		return
	}
	if f := c.layer.cfg.OnRead.f.Load(); f != nil {
		(*f)(ctx, &c.decision)
	}
}
