package rywhttp

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// ErrNoSession is returned by Transport with RequireSession for a request whose
// context has no session.
var ErrNoSession = errors.New("rywhttp: the request's context carries no session")

// Transport is an http.RoundTripper for calling other services: it sends the token
// of the session in the request's context along and has that session observe what
// comes back, so that a later read sees what the other service wrote for it. The
// zero value works. It must not be copied once used; its fields must not be changed
// then. Safe for concurrent use.
type Transport struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Header is the header's name. Empty: DefaultHeader.
	Header string
	// Signer signs what is sent and verifies what comes back. Nil: not signed.
	Signer *token.Signer
	// Only says which requests carry a token, so that it does not follow a
	// redirect to somebody else. Nil: all.
	Only func(*http.Request) bool
	// RequireSession makes requests without a session fail with ErrNoSession:
	// somebody has dropped the context. Otherwise they are counted.
	RequireSession bool

	dropped, invalid atomic.Int64
}

// Dropped counts requests without a session.
func (t *Transport) Dropped() int64 { return t.dropped.Load() }

// Invalid counts answers whose token could not be used. The session goes on as if
// something of unknown position had been written.
func (t *Transport) Invalid() int64 { return t.invalid.Load() }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.Only != nil && !t.Only(req) {
		return t.base().RoundTrip(req)
	}
	s, ok := session.FromContext(req.Context())
	if !ok {
		t.dropped.Add(1)
		if t.RequireSession {
			closeBody(req)
			return nil, fmt.Errorf("%w: %s %s", ErrNoSession, req.Method, req.URL.Redacted())
		}
		return t.base().RoundTrip(req)
	}
	req = req.Clone(req.Context()) // a RoundTripper must not change what it was given
	req.Header[t.header()] = []string{format(s.Token(), t.Signer)}
	resp, err := t.base().RoundTrip(req)
	if resp != nil {
		t.observe(s, resp.Header[t.header()])
	}
	return resp, err
}

// observe merges what came back. It is bounded as a request's header is.
func (t *Transport) observe(s *session.Session, lines []string) {
	var in received
	cfg := Config{Signer: t.Signer}
	cfg.receiveHeader(&in, lines)
	s.Observe(in.tok)
	if in.err != nil {
		t.invalid.Add(1)
		s.MarkWrote(token.Key{})
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

func (t *Transport) header() string {
	if t.Header == "" {
		return DefaultHeader
	}
	return http.CanonicalHeaderKey(t.Header)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
