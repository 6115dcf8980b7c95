package scopes

import (
	"context"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/session"
)

// WithStrongAfterWrite returns a context whose reads go to the primary once the
// session in it has written with any context, beginning from now; until then ctx's
// hint and session decide. It is for code that reads back its writes through
// something that no position covers, such as other people's writes that its own
// have set off. A token that the session came with is no write. Without a session
// nobody knows of writes, so the reads are strong from the start.
//
// A context that this library makes from the returned one (NewContext, Into, the
// functions here) keeps what holds at that moment: call this one last.
func WithStrongAfterWrite(ctx context.Context) context.Context {
	strong := WithStrong(ctx)
	s, ok := session.FromContext(ctx)
	if !ok {
		return strong
	}
	return &afterWrite{Context: ctx, watch: s.Watch(), strong: ctxval.From(strong)}
}

// afterWrite is a context that changes what it says of hints once.
type afterWrite struct {
	context.Context
	watch  session.Watch
	strong *ctxval.Values
	wrote  atomic.Bool
}

// Value implements context.Context.
func (a *afterWrite) Value(key any) any {
	if key == (ctxval.Key{}) && a.hasWritten() {
		return a.strong
	}
	return a.Context.Value(key)
}

func (a *afterWrite) hasWritten() bool {
	if !a.wrote.Load() && a.watch.Changes().Wrote {
		a.wrote.Store(true)
	}
	return a.wrote.Load()
}
