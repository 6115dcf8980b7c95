package carrier

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Where a token stands in a message.
const (
	// Field is the field of a JSON object, the claim of a JWT and the key of a
	// table.
	Field = "consistency_token"
	// Header is the header; the same as that of HTTP.
	Header = "X-Consistency-Token"
)

// ErrMissing is returned for a message without a token where Missing says so.
var ErrMissing = errors.New("carrier: the message carries no consistency token")

// Missing is what becomes of a message without a token.
type Missing uint8

// What becomes of a message without a token.
const (
	// MissingStrong has its worker read nothing older than the moment it was
	// received: on the primary, or on a replica that has caught up with it since.
	MissingStrong Missing = iota
	// MissingRefused is the error ErrMissing.
	MissingRefused
	// MissingStale lets any healthy replica answer.
	MissingStale
)

// Carrier puts tokens into messages and takes them out. The zero value is ready for
// use, and what the functions of this package use. Its fields must not be changed
// while it is used. Safe for concurrent use.
type Carrier struct {
	// Signer signs what is sent and verifies what comes in, for messages that
	// pass through the hands of others. Nil: not signed.
	Signer *token.Signer
	// Missing says what becomes of messages without a token.
	Missing Missing

	missing, invalid atomic.Int64
}

// std is the Carrier of the functions of this package.
var std Carrier

// Counts returns how many messages came without a token and how many with a text
// that could not be used.
func (c *Carrier) Counts() (missing, invalid int64) { return c.missing.Load(), c.invalid.Load() }

// Token returns what the context's session and its collector hold: what a message
// sent now has to cover. It is empty where there is neither.
func Token(ctx context.Context) token.Token {
	t, _ := tokenOf(ctx)
	return t
}

// tokenOf is Token, and whether there is a session or a collector at all.
func tokenOf(ctx context.Context) (t token.Token, ok bool) {
	v := ctxval.From(ctx)
	if v == nil {
		return t, false
	}
	for _, holder := range [...]any{v.Session, v.Sink} {
		if s, is := holder.(*session.Session); is {
			t, ok = t.Merge(s.Token()), true
		}
	}
	return t, ok
}

// Resume returns a context with a session of its own that begins with t.
func Resume(ctx context.Context, t token.Token) context.Context {
	return session.NewContext(ctx, session.New(t))
}

// text is what goes into a message: empty, and still there, for a sender whose session
// has nothing to be seen; nothing for one that has no session, so that a hop which lost
// it is noticed.
func (c *Carrier) text(ctx context.Context) (text string, ok bool) {
	t, ok := tokenOf(ctx)
	if ok && c.Signer != nil {
		return c.Signer.Sign(t), true
	}
	return t.String(), ok
}

// resume is Resume for a message's text, if it has one.
func (c *Carrier) resume(ctx context.Context, text string, there bool) (context.Context, error) {
	if !there {
		return c.resumeMissing(ctx)
	}
	t, err := c.parse(text)
	if err != nil {
		c.invalid.Add(1)
		return nil, err
	}
	return Resume(ctx, t), nil
}

func (c *Carrier) parse(text string) (token.Token, error) {
	switch {
	case text == "":
		return token.Token{}, nil
	case c.Signer != nil:
		return c.Signer.Verify(text)
	}
	return token.Parse(text)
}

func (c *Carrier) resumeMissing(ctx context.Context) (context.Context, error) {
	c.missing.Add(1)
	switch c.Missing {
	case MissingRefused:
		return nil, ErrMissing
	case MissingStale:
		return Resume(ctx, token.Token{}), nil
	}
	return Resume(ctx, token.Token{}.Mark(token.Key{}, token.Marks{SeenPrimary: true}, time.Time{})), nil
}
