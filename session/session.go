package session

import (
	"context"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Session is the mutable holder of one causal thread's token. The zero value is
// an empty session, ready for use. It must not be copied. Safe for concurrent
// use.
type Session struct {
	mu sync.Mutex // protects everything below

	// tok holds positions and the marks "wrote" and "seen primary". Nodes that
	// were seen stand in reads, never in tok.
	tok token.Token

	// markedAt is when the newest mark of tok was set or the newest token was
	// received: only a position query begun after it resolves marks.
	markedAt mono.Instant

	// marks says, per entry, when a mark of it was set or received last.
	marks instants

	// covered says, per cluster, when the newest position query of its primary
	// began whose answer is in tok.
	covered instants

	// newest is when the newest of the position queries began whose answers are
	// in tok.
	newest mono.Instant

	ahead   []ahead      // what was seen on replicas and may not be shown by the primary yet
	reads   []NodeRead   // nodes read from, whose position then is not known yet
	stale   bool         // see NoteStale
	open    int          // read-write transactions under way
	awaited []awaited    // writes in transactions that cannot be observed
	into    *token.Token // where a collector shows its token, see Collect
}

// awaited is a write in a transaction whose end only a question can tell.
type awaited struct {
	key  token.Key
	done func() bool
}

// instants is something that happened last at a time, per cluster.
type instants []struct {
	key token.Key
	at  mono.Instant
}

// of is zero if it never happened.
func (i instants) of(key token.Key) mono.Instant {
	for _, c := range i {
		if c.key == key {
			return c.at
		}
	}
	return 0
}

func (i *instants) note(key token.Key, at mono.Instant) {
	for n := range *i {
		if c := &(*i)[n]; c.key == key {
			c.at = max(c.at, at)
			return
		}
	}
	*i = append(*i, struct {
		key token.Key
		at  mono.Instant
	}{key, at})
}

// New returns a session that starts from the given tokens.
func New(toks ...token.Token) *Session {
	s := &Session{}
	for _, t := range toks {
		s.Observe(t)
	}
	return s
}

// NewContext returns a context that carries s: reads made with it honour s, and
// whatever is done with it advances s. A nil s takes ctx's session away.
func NewContext(ctx context.Context, s *Session) context.Context {
	return ctxval.With(ctx, func(v *ctxval.Values) {
		v.Session = nil
		if s != nil {
			v.Session = s
		}
	})
}

// FromContext returns the session that ctx carries; false when there is none.
func FromContext(ctx context.Context) (*Session, bool) {
	v := ctxval.From(ctx)
	if v == nil {
		return nil, false
	}
	s, ok := v.Session.(*Session)
	return s, ok
}

// Collect returns a context whose writes and reads are also merged into *into,
// which is brought up to date before the call that did them returns. What *into
// holds already is kept. Reads do not honour it. *into must not be read while a
// call using the context is under way. A collector of ctx itself is replaced.
func Collect(ctx context.Context, into *token.Token) context.Context {
	s := &Session{}
	s.Observe(*into)
	s.into = into
	return ctxval.With(ctx, func(v *ctxval.Values) { v.Sink = s })
}

// Collects reports whether the session is one of Collect.
func (s *Session) Collects() bool { return s.into != nil }

// Token returns what the session has written and read so far, to be handed to
// whoever continues it. Positions that are not known yet travel as marks.
func (s *Session) Token() token.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token()
}

func (s *Session) token() token.Token {
	t := s.tok
	for _, a := range s.awaited {
		// A position asked for meanwhile does not cover what is yet to commit.
		t = t.Mark(a.key, token.Marks{Wrote: true}, time.Now())
	}
	for _, r := range s.reads {
		t = t.With(token.Entry{Key: r.Key, SeenNodes: []token.Incarnation{r.Node}, Minted: s.readDate(r.Key)})
	}
	return t
}

// Observe merges a token that was received: from now on the session sees what
// that token's holder had written and read. The empty token changes nothing.
func (s *Session) Observe(t token.Token) {
	if t.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	now := mono.Now()
	for i := range t.Len() {
		e := t.At(i)
		for _, node := range e.SeenNodes {
			s.noteRead(e.Key, node, now)
		}
	}
	for i := range t.Len() {
		e := t.At(i)
		if !e.Floor.IsZero() {
			s.noteAhead(e.Key)
		}
		if e.Wrote || e.SeenPrimary {
			s.marks.note(e.Key, now)
		}
	}
	s.keepLines(t)
	s.tok = s.tok.Merge(withoutNodes(t))
	// What covered the session's marks says nothing of the token's, nor of what
	// merging had no room for.
	s.markedAt = now
}

func withoutNodes(t token.Token) token.Token {
	r := t
	for i := range t.Len() {
		if e := t.At(i); len(e.SeenNodes) > 0 {
			e.SeenNodes = nil
			r = r.Replace(e)
		}
	}
	return r
}

// unlock shows a collector's token and releases the lock.
func (s *Session) unlock() {
	if s.into != nil {
		*s.into = s.token()
	}
	s.mu.Unlock()
}
