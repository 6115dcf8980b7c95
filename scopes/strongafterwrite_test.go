package scopes

import (
	"context"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
)

func levelOf(ctx context.Context) policy.Level {
	if h, ok := ctxval.From(ctx).Hint.(*policy.Hint); ok {
		return h.Level
	}
	return policy.Unset
}

func TestStrongAfterWrite(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*session.Session)
		want policy.Level
	}{
		"nothing":        {func(*session.Session) {}, policy.StaleOK},
		"read":           {func(s *session.Session) { s.Advance(key, tok.At(0).Write, mono.Now(), false) }, policy.StaleOK},
		"failed write":   {func(s *session.Session) { s.MarkSawPrimary(key) }, policy.StaleOK},
		"write":          {func(s *session.Session) { s.MarkWrote(key) }, policy.Strong},
		"captured write": {func(s *session.Session) { p := tok.At(0).Write; p.LSN++; s.Advance(key, p, mono.Now(), true) }, policy.Strong},
		"write, then reads": {func(s *session.Session) {
			s.MarkWrote(key)
			p := tok.At(0).Write
			p.LSN++
			s.Advance(key, p, mono.Now(), false)
		}, policy.Strong},
	} {
		s := session.New(tok) // which is no write of its own
		outer := WithStaleOK(session.NewContext(context.Background(), s))
		ctx := WithStrongAfterWrite(outer)
		if have := levelOf(ctx); have != policy.StaleOK {
			t.Errorf("%s, before: have %s", name, have)
		}
		c.do(s)
		for range 2 {
			if have := levelOf(ctx); have != c.want {
				t.Errorf("%s: have %s, want %s", name, have, c.want)
			}
		}
		if have := levelOf(outer); have != policy.StaleOK {
			t.Errorf("%s: the context it was made from says %s", name, have)
		}
		if have, _ := session.FromContext(ctx); have != s {
			t.Errorf("%s: the session is gone", name)
		}
	}
}

func TestStrongAfterWriteWithoutASession(t *testing.T) {
	type own struct{}
	ctx := WithStrongAfterWrite(context.WithValue(context.Background(), own{}, 7))
	if levelOf(ctx) != policy.Strong || ctx.Value(own{}) != 7 {
		t.Errorf("have %s, value %v", levelOf(ctx), ctx.Value(own{}))
	}
}
