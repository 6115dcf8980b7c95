package rywhttp

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

var (
	here    = token.Key{System: 11}
	there   = token.Key{System: 22}
	anybody = token.Key{}
)

func at(timeline uint32, lsn uint64) token.Position {
	return token.Position{Timeline: timeline, LSN: token.LSN(lsn)}
}

// What a handler's statements do to the session, as the plugin tells it.
func wrote(s *session.Session, lsn uint64) { s.Advance(here, at(1, lsn), mono.Now(), true) }

func read(s *session.Session, lsn uint64) { s.Advance(here, at(1, lsn), mono.Now(), false) }

func sessionOf(t testing.TB, r *http.Request) *session.Session {
	t.Helper()
	s, ok := session.FromContext(r.Context())
	if !ok {
		t.Error("the request's context has no session")
		return session.New()
	}
	return s
}

// inHandler is a handler given the session of its request.
type inHandler = func(w http.ResponseWriter, r *http.Request, s *session.Session)

func wrap(t testing.TB, m *Middleware, do inHandler) http.Handler {
	return m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(w, r, sessionOf(t, r)) }))
}

func middleware(t testing.TB, cfg Config) *Middleware {
	t.Helper()
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// protocols are the servers that a handler runs behind.
var protocols = map[string]func(t *testing.T, h http.Handler) *httptest.Server{
	"HTTP/1": func(t *testing.T, h http.Handler) *httptest.Server { return serve(t, h, false) },
	"HTTP/2": func(t *testing.T, h http.Handler) *httptest.Server { return serve(t, h, true) },
}

func serve(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = http2
	srv.Config.ErrorLog = nil
	if !http2 {
		srv.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// get sends a request and returns the response, whose body was read.
func get(t *testing.T, srv *httptest.Server, set func(*http.Request)) *http.Response {
	t.Helper()
	resp, err := tryGet(t, srv, set)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func tryGet(t *testing.T, srv *httptest.Server, set func(*http.Request)) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(req)
	}
	client := *srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp, err
}

// call runs a handler without a network.
func call(h http.Handler, set func(*http.Request)) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if set != nil {
		set(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// tokenOf returns the response header's token, empty if there is none.
func tokenOf(t testing.TB, resp *http.Response) token.Token {
	t.Helper()
	return parsed(t, resp.Header.Get(DefaultHeader))
}

func parsed(t testing.TB, text string) token.Token {
	t.Helper()
	if text == "" {
		return token.Token{}
	}
	tok, err := token.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// jar is what a browser holds: cookies by name. It does as RFC 6265 says, for one
// host.
type jar map[string]string

func (j jar) take(resp *http.Response) {
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			delete(j, c.Name)
			continue
		}
		j[c.Name] = c.Value
	}
}

func (j jar) give(r *http.Request) {
	for name, value := range j {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
}

// token is what all cookies of the kinds say together.
func (j jar) token(t testing.TB, kinds string) (all token.Token) {
	t.Helper()
	for name, value := range j {
		if strings.Contains(kinds, strings.Split(name, "-")[1]) {
			all = all.Merge(parsed(t, value))
		}
	}
	return all
}

func (j jar) count(kinds string) (n int) {
	for name := range j {
		if strings.Contains(kinds, strings.Split(name, "-")[1]) {
			n++
		}
	}
	return n
}

// set is what a response sets, as a jar of its own.
func set(resp *http.Response) jar {
	j := jar{}
	j.take(resp)
	return j
}

func wantWrite(t *testing.T, tok token.Token, want uint64) {
	t.Helper()
	if e, _ := tok.Entry(here); e.Write != at(1, want) {
		t.Errorf("have write %s, want %d", e.Write, want)
	}
}

func wantNothing(t *testing.T, resp *http.Response) {
	t.Helper()
	if h := resp.Header; h.Get(DefaultHeader) != "" || h.Get("Set-Cookie") != "" {
		t.Errorf("have header %q and cookies %q, want neither", h.Get(DefaultHeader), h["Set-Cookie"])
	}
}

func text(e token.Entry) string {
	if e.Minted.IsZero() {
		e.Minted = time.Now()
	}
	return token.FromEntries(e).String()
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
