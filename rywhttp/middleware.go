package rywhttp

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Middleware gives every request a session and carries its token from and to the
// client. Made by New. Safe for concurrent use.
type Middleware struct {
	cfg   Config
	now   func() time.Time
	stats counters
	owed  owed
}

type counters struct{ requests, missing, invalid, refused, sent, ahead, late, storeFailed atomic.Int64 }

// Stats counts what happened to requests. The zero value is nothing yet.
type Stats struct {
	// Requests is all of them.
	Requests int64
	// Missing carried no token, Invalid one that could not be used.
	Missing, Invalid int64
	// Refused were answered by Config.Refuse.
	Refused int64
	// Sent had a token written back.
	Sent int64
	// Ahead had a mark sent with the headers for a transaction that was open
	// then.
	Ahead int64
	// Late wrote after the headers had left, without a mark: the client may miss
	// that write. With Config.Strict they were aborted.
	Late int64
	// StoreFailed is how often Config.Store could not be asked.
	StoreFailed int64
}

// New returns a Middleware. The error wraps ErrConfig.
func New(cfg Config) (*Middleware, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Middleware{cfg: cfg, now: time.Now}, nil
}

// Stats returns the counters.
func (m *Middleware) Stats() Stats {
	s := &m.stats
	return Stats{
		Requests: s.requests.Load(), Missing: s.missing.Load(), Invalid: s.invalid.Load(), Refused: s.refused.Load(),
		Sent: s.sent.Load(), Ahead: s.ahead.Load(), Late: s.late.Load(),
		StoreFailed: s.storeFailed.Load(),
	}
}

// Wrap returns the handler that runs next with a session in the request's
// context. Whatever next does with r.Context() honours and advances it.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
}

func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	in := m.cfg.receive(r, m.now())
	m.load(r, &in)
	m.count(&in)
	if err := m.cfg.refused(&in); err != nil {
		m.stats.refused.Add(1)
		m.cfg.Refuse(w, r, err)
		return
	}
	ctx := r.Context()
	s, ok := session.FromContext(ctx)
	if !ok {
		s = session.New()
		ctx = session.NewContext(ctx, s)
	}
	m.start(s, &in)
	t := &turn{m: m, r: r, s: s, in: &in, watch: s.Watch()}
	out := &writer{ResponseWriter: w, before: func() { t.headers(w.Header()) }}
	done := false
	defer func() {
		out.headers() // of a response without a body, or of who recovers a panic
		t.end(done)
	}()
	next.ServeHTTP(out.shaped(), r.WithContext(ctx))
	done = true
}

func (m *Middleware) count(in *received) {
	m.stats.requests.Add(1)
	switch {
	case in.err != nil:
		m.stats.invalid.Add(1)
	case !in.any:
		m.stats.missing.Add(1)
	}
}

// start has the session begin where the client is.
func (m *Middleware) start(s *session.Session, in *received) {
	s.Observe(in.tok)
	switch {
	case in.err != nil:
		s.MarkWrote(token.Key{})
	case in.unknown || !in.any && m.cfg.Missing == MissingStrong:
		s.Observe(nothingMissed)
	}
}

// turn is one request on its way.
type turn struct {
	m     *Middleware
	r     *http.Request
	s     *session.Session
	in    *received
	watch session.Watch // until the headers are sent; then from there on
	ahead bool          // what is written later has been marked
}

// headers writes back what was done so far.
func (t *turn) headers(h http.Header) {
	did := t.watch.Changes()
	did.Token = withoutMissing(did.Token)
	if t.s.Stale() {
		h.Set(StaleHeader, "1")
	}
	t.m.respond(h, t.in, did)
	stored := t.m.put(t.r, t.in, did)
	if did.Open {
		t.m.stats.ahead.Add(1)
	}
	t.ahead = did.Open || wroteMark(did.Token)
	t.watch = t.s.Watch()
	t.acknowledge(stored, did)
}

// acknowledge breaks the response off, in strict mode, to a write that the store could
// not be told of: who is told of a success would find it on this device only.
func (t *turn) acknowledge(stored bool, did session.Changes) {
	if !stored && did.Wrote && t.m.cfg.Strict {
		panic(http.ErrAbortHandler)
	}
}

// end looks for a write that nobody was told of. A store can still be told.
func (t *turn) end(done bool) {
	did := t.watch.Changes()
	did.Token = withoutMissing(did.Token)
	stored := t.m.put(t.r, t.in, did)
	if done {
		t.acknowledge(stored, did)
	}
	if t.ahead || !did.Wrote || !done {
		return
	}
	t.m.stats.late.Add(1)
	if t.m.cfg.Strict {
		panic(http.ErrAbortHandler)
	}
}

// wroteMark reports whether the holder of tok will look for the newest write
// anyway.
func wroteMark(tok token.Token) bool {
	for i := range tok.Len() {
		if tok.At(i).Wrote {
			return true
		}
	}
	return false
}
