package session

import (
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Watch is a moment in a session's life, from which on Changes tells what the
// session did. It is what a carrier of tokens, such as rywhttp, decides by.
type Watch struct {
	s     *Session
	base  token.Token
	begun mono.Instant
}

// Changes is what a session did since a Watch was begun. The zero value is
// nothing. It errs on one side only: while a mark is pending that the session came
// with, whatever is done in that cluster may count as what the mark is about.
type Changes struct {
	// Wrote says that a write was acknowledged or may have happened, or that the
	// position of one that the session came with was found.
	Wrote bool
	// Read says that something was read that later reads must not fall behind; a
	// write that failed is a read, too.
	Read bool
	// Open says that a read-write transaction is under way: what it will have
	// written is not in Token.
	Open bool
	// Token is the session's token now.
	Token token.Token
}

// Watch begins to watch s.
func (s *Session) Watch() Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Watch{s: s, base: s.tok, begun: mono.Now()}
}

// Changes returns what the session did since w was begun.
func (w Watch) Changes() Changes {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Changes{Open: s.open > 0 || len(s.awaited) > 0, Token: s.token()}
	for _, r := range s.reads {
		c.Read = c.Read || r.At > w.begun
	}
	for i := range s.tok.Len() {
		now := s.tok.At(i)
		was, _ := w.base.Entry(now.Key)
		again := s.marks.of(now.Key) > w.begun
		c.Wrote = c.Wrote || now.Write != was.Write || now.Wrote && (!was.Wrote || again)
		c.Read = c.Read || now.Floor != was.Floor || now.SeenPrimary && (!was.SeenPrimary || again)
	}
	if s.tok.Others() != w.base.Others() {
		c.Wrote, c.Read = true, true // there was no room to say of which
	}
	return c
}
