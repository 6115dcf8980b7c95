// Package ctxval keeps everything this library puts into a context behind one
// key, so that a query pays for one context lookup however much was put there.
package ctxval

import "context"

// Values is what a context carries for this library. Each field is set by the
// package that owns its type and is nil when absent. A Values that is reachable
// from a context is never changed: With copies it.
type Values struct {
	Session any // *session.Session
	Hint    any // *policy.Hint
	Sink    any // *session.Session that only collects
	Record  any // *callbacks.Record of the statement this context belongs to
	Unit    any // *callbacks.unit that the driver is to tell
	Begin   any // *policy.Hint for a transaction that is begun with the context
	Explain any // func(*gorm.DB) that is told of each statement
	Here    any // *policy.Decision of a statement that stays in its transaction
}

// Key is the context key of *Values. It is exported within the module for types
// that are contexts themselves and answer Value on their own.
type Key struct{}

// From returns the values of ctx, or nil when there are none.
func From(ctx context.Context) *Values {
	v, _ := ctx.Value(Key{}).(*Values)
	return v
}

// With returns a context whose values are those of ctx after change.
func With(ctx context.Context, change func(*Values)) context.Context {
	var v Values
	if old := From(ctx); old != nil {
		v = *old
	}
	change(&v)
	return context.WithValue(ctx, Key{}, &v)
}
