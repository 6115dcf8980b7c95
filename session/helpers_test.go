package session

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

var (
	here    = token.Key{System: 11}
	there   = token.Key{System: 22}
	nowhere = token.Key{} // whoever wrote it knew no cluster
)

func at(timeline uint32, lsn uint64) token.Position {
	return token.Position{Timeline: timeline, LSN: token.LSN(lsn)}
}

// later returns an instant after every one returned or taken before.
func later() mono.Instant {
	now := mono.Now()
	for mono.Now() == now {
	}
	return mono.Now()
}

func needOf(s *Session, key token.Key) *Need {
	n := &Need{}
	s.Need(n, key, time.Time{})
	return n
}

// wantNeed compares what counts for routing.
func wantNeed(t *testing.T, s *Session, key token.Key, want Need) {
	t.Helper()
	have := needOf(s, key)
	if have.Position != want.Position || have.Bare != want.Bare || have.Marked != want.Marked ||
		have.Elsewhere != want.Elsewhere || have.Open != want.Open || have.Aged != want.Aged || len(have.Reads()) != want.nreads {
		t.Errorf("need of %s: have %s, want %s", key, describe(have), describe(&want))
	}
}

func describe(n *Need) string {
	s := n.Position.String() + " bare " + n.Bare.String()
	for name, set := range map[string]bool{"marked": n.Marked, "aged": n.Aged, "elsewhere": n.Elsewhere, "open": n.Open} {
		if set {
			s += " " + name
		}
	}
	for range n.Reads() {
		s += " read"
	}
	return s
}

// handed returns the token as another process would get it.
func handed(t *testing.T, tok token.Token) token.Token {
	t.Helper()
	if tok.IsZero() {
		return tok
	}
	got, err := token.Parse(tok.String())
	if err != nil {
		t.Fatalf("token %s: %v", tok, err)
	}
	return got
}
