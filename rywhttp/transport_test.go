package rywhttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// do calls srv with a context that carries s, if s is not nil.
func do(t *testing.T, tr *Transport, url string, s *session.Session) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(session.NewContext(context.Background(), s), http.MethodPost, url, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if len(req.Header) != 0 {
		t.Errorf("the caller's request was changed: %v", req.Header)
	}
	return resp, err
}

func TestATokenGoesThereAndBack(t *testing.T) {
	for name, signer := range map[string]*token.Signer{"unsigned": nil, "signed": testSigner(t, "k1")} {
		for protocol, start := range protocols {
			t.Run(protocol+" "+name, func(t *testing.T) {
				m := middleware(t, Config{Signer: signer, Missing: MissingRefused, Header: "X-Ryw"})
				srv := start(t, wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
					wantWrite(t, s.Token(), 50)
					wrote(s, 77)
				}))
				s := session.New(token.FromEntries(token.Entry{Key: here, Write: at(1, 50)}))
				tr := &Transport{Base: srv.Client().Transport, Signer: signer, Header: "x-ryw"}
				if resp, err := do(t, tr, srv.URL, s); err != nil || resp.StatusCode != 200 {
					t.Fatalf("have %v, %v", resp, err)
				}
				wantWrite(t, s.Token(), 77)
			})
		}
	}
}

// A session that has nothing to see yet says so; it has not been dropped.
func TestAnEmptySessionIsNoMissingToken(t *testing.T) {
	m := middleware(t, Config{Missing: MissingRefused})
	srv := serve(t, wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) }), false)
	s := session.New()
	resp, err := do(t, &Transport{Base: srv.Client().Transport}, srv.URL, s)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("have %v, %v", resp, err)
	}
	wantWrite(t, s.Token(), 77)
}

// What another service wrote for a browser comes to the browser's cookies.
func TestAWriteTwoHopsAway(t *testing.T) {
	far := serve(t, wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) }), false)
	tr := &Transport{Base: far.Client().Transport}
	near := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, r *http.Request, _ *session.Session) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, far.URL, nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
	})
	wantWrite(t, set(call(near, nil)).token(t, "w"), 77)
}

func TestAContextWithoutSession(t *testing.T) {
	var got http.Header
	srv := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), false)
	tr := &Transport{Base: srv.Client().Transport}
	if _, err := do(t, tr, srv.URL, nil); err != nil || got[DefaultHeader] != nil || tr.Dropped() != 1 {
		t.Errorf("have %v, header %q, %d dropped", err, got[DefaultHeader], tr.Dropped())
	}
	got = nil
	tr.RequireSession = true
	if _, err := do(t, tr, srv.URL+"/a?password=x", nil); !errors.Is(err, ErrNoSession) || got != nil || tr.Dropped() != 2 {
		t.Errorf("have %v, sent %t, %d dropped", err, got != nil, tr.Dropped())
	}
}

func TestOnlySomeRequestsCarryAToken(t *testing.T) {
	var got http.Header
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set(DefaultHeader, "0/99")
	}), false)
	s := session.New(token.FromLSN(7))
	tr := &Transport{Base: srv.Client().Transport, RequireSession: true, Only: func(r *http.Request) bool { return r.URL.Host != mustURL(t, srv.URL).Host }}
	if _, err := do(t, tr, srv.URL, s); err != nil || got[DefaultHeader] != nil || !s.Token().Equal(token.FromLSN(7)) {
		t.Errorf("have %v, header %q, session %s", err, got[DefaultHeader], s.Token())
	}
}

// What an answer said that cannot be read may have been a write.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	for name, answer := range map[string][]string{
		"garbage": {"garbage"}, "unsigned": {"0/7"}, "one of two": {testSigner(t, "k1").Sign(token.FromLSN(7)), "x"},
		"too many": {strings.Repeat(testSigner(t, "k1").Sign(token.FromLSN(7))+",", 100)},
	} {
		srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header()[DefaultHeader] = answer }), false)
		s := session.New()
		tr := &Transport{Base: srv.Client().Transport, Signer: testSigner(t, "k1")}
		if _, err := do(t, tr, srv.URL, s); err != nil || tr.Invalid() != 1 {
			t.Errorf("%s: have %v, %d invalid", name, err, tr.Invalid())
		}
		if e, _ := s.Token().Entry(anybody); !e.Wrote {
			t.Errorf("%s: have %+v, want it marked", name, e)
		}
	}
}

func TestAServerThatIsDown(t *testing.T) {
	srv := serve(t, http.NotFoundHandler(), false)
	srv.Close()
	s := session.New(token.FromLSN(7))
	if _, err := do(t, &Transport{Base: srv.Client().Transport}, srv.URL, s); err == nil || !s.Token().Equal(token.FromLSN(7)) {
		t.Errorf("have %v, session %s", err, s.Token())
	}
}

func TestTransportWithoutBase(t *testing.T) {
	if (&Transport{}).base() != http.DefaultTransport {
		t.Error("want http.DefaultTransport")
	}
}
