package carrier

import (
	"context"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// Headers is what a message has: the headers of NATS, of net/http and of most
// brokers' clients. Those that have another form are adapted in three lines.
type Headers interface {
	// Get returns the first value of a header, empty if there is none.
	Get(key string) string
	// Set replaces a header.
	Set(key, value string)
}

// lister is what Headers may also have, to tell an empty header from none.
type lister interface{ Values(key string) []string }

// InjectHeaders sets the header X-Consistency-Token to the token of ctx, if that has a
// session or a collector.
func InjectHeaders(ctx context.Context, h Headers) { std.InjectHeaders(ctx, h) }

// ExtractHeaders returns a context whose session begins with the token in the header
// X-Consistency-Token. The error wraps ErrMissing or token.ErrInvalid. An empty
// header counts as missing unless h also has a method Values, as those of net/http
// and NATS do.
func ExtractHeaders(ctx context.Context, h Headers) (context.Context, error) {
	return std.ExtractHeaders(ctx, h)
}

// InjectHeaders is the function InjectHeaders by the settings of c.
func (c *Carrier) InjectHeaders(ctx context.Context, h Headers) {
	if text, ok := c.text(ctx); ok {
		h.Set(Header, text)
	}
}

// ExtractHeaders is the function ExtractHeaders by the settings of c.
func (c *Carrier) ExtractHeaders(ctx context.Context, h Headers) (context.Context, error) {
	text := h.Get(Header)
	there := text != ""
	if l, ok := h.(lister); ok {
		there = len(l.Values(Header)) > 0
	}
	return c.resume(ctx, text, there)
}

// InjectMap sets the key consistency_token of m, a JWT's claims or a table of
// RabbitMQ, to the token of ctx, if that has a session or a collector.
func InjectMap[M ~map[string]any](ctx context.Context, m M) { std.InjectMap(ctx, m) }

// ExtractMap returns a context whose session begins with the token under the key
// consistency_token of m. The error wraps ErrMissing or token.ErrInvalid.
//
// The signature of a JWT is not checked here; take claims that were verified.
func ExtractMap[M ~map[string]any](ctx context.Context, m M) (context.Context, error) {
	return std.ExtractMap(ctx, m)
}

// InjectMap is the function InjectMap by the settings of c.
func (c *Carrier) InjectMap(ctx context.Context, m map[string]any) {
	if text, ok := c.text(ctx); ok {
		m[Field] = text
	}
}

// ExtractMap is the function ExtractMap by the settings of c.
func (c *Carrier) ExtractMap(ctx context.Context, m map[string]any) (context.Context, error) {
	switch v := m[Field].(type) {
	case nil:
		return c.resume(ctx, "", false)
	case string:
		return c.resume(ctx, v, true)
	case []byte: // as some brokers' tables have it
		return c.resume(ctx, string(v), true)
	}
	c.invalid.Add(1)
	return nil, notText()
}

func notText() error { return fmt.Errorf("carrier: %w: %s is no text", token.ErrInvalid, Field) }
