package scopes

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// WithStaleOK returns a context whose reads may be answered by any healthy
// replica, except that a session in it still sees its own writes and never goes
// back. It replaces a hint that ctx carries.
func WithStaleOK(ctx context.Context, opts ...Option) context.Context {
	return with(ctx, staleOK(opts))
}

// WithStrong returns a context whose reads go to the primary. It replaces a hint
// that ctx carries.
func WithStrong(ctx context.Context) context.Context {
	return with(ctx, &policy.Hint{Level: policy.Strong})
}

// WithReadYourWrites returns a context whose reads see what tok covers, as
// ReadYourWrites does for one query. It replaces a hint that ctx carries.
func WithReadYourWrites[T token.Token | token.LSN | ~string](ctx context.Context, tok T) context.Context {
	return with(ctx, readYourWrites(tok))
}

func with(ctx context.Context, h *policy.Hint) context.Context {
	return ctxval.With(ctx, func(v *ctxval.Values) { v.Hint = h })
}
