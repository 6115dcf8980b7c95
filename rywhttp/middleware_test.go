package rywhttp

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// sends are what requests come with.
func sends(e token.Entry) map[string]func(*http.Request) {
	return map[string]func(*http.Request){
		"header":       func(r *http.Request) { r.Header.Set(DefaultHeader, text(e)) },
		"write cookie": func(r *http.Request) { jar{"ryw-w-a": text(e)}.give(r) },
		"floor cookie": func(r *http.Request) { jar{"ryw-f-a": text(e)}.give(r) },
		"open cookie":  func(r *http.Request) { jar{"ryw-o-a": text(e)}.give(r) },
		"several": func(r *http.Request) {
			jar{"ryw-w-a": text(token.Entry{Key: there, Wrote: true}), "ryw-f-a": text(e), "other": "x"}.give(r)
		},
		"two headers": func(r *http.Request) { r.Header[DefaultHeader] = []string{text(e), "0/1"} },
		"joined":      func(r *http.Request) { r.Header[DefaultHeader] = []string{"0/1, " + text(e)} },
	}
}

func TestTheSessionBeginsWhereTheClientIs(t *testing.T) {
	for name, send := range sends(token.Entry{Key: here, Write: at(1, 50)}) {
		h := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
			wantWrite(t, s.Token(), 50)
		})
		t.Run(name, func(t *testing.T) { wantNothing(t, call(h, send)) })
	}
}

// Not even what stood in for a token that was missing or bad, or nodes that were
// seen and are dated anew.
func TestAHandlerThatSentNoStatementSetsNothing(t *testing.T) {
	h := wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
		s.BeginWrite()
		s.EndWrite()
		fmt.Fprintln(w, "static")
	})
	all := sends(token.Entry{Key: here, Wrote: true, SeenNodes: []token.Incarnation{5}, Minted: time.UnixMilli(5)})
	all["nothing"] = nil
	all["garbage"] = func(r *http.Request) { r.Header.Set(DefaultHeader, "garbage") }
	for name, send := range all {
		t.Run(name, func(t *testing.T) { wantNothing(t, call(h, send)) })
	}
}

func TestWhatIsWrittenBack(t *testing.T) {
	for name, c := range map[string]struct {
		do                         func(*session.Session)
		header, write, floor, open bool
	}{
		"write":        {do: func(s *session.Session) { wrote(s, 77) }, header: true, write: true},
		"write, mark":  {do: func(s *session.Session) { s.MarkWrote(here) }, header: true, write: true},
		"read":         {do: func(s *session.Session) { read(s, 77) }, header: true, floor: true},
		"read of node": {do: func(s *session.Session) { s.ReadNode(here, 5, mono.Now()) }, header: true, floor: true},
		"failed write": {do: func(s *session.Session) { s.MarkSawPrimary(here) }, header: true, floor: true},
		"read and write": {
			do:     func(s *session.Session) { read(s, 99); s.ReadNode(here, 5, mono.Now()+1e9); wrote(s, 98) },
			header: true, write: true, floor: true,
		},
		"open":           {do: func(s *session.Session) { s.BeginWrite() }, header: true, open: true},
		"open and wrote": {do: func(s *session.Session) { s.BeginWrite(); wrote(s, 77) }, header: true, open: true, write: true},
		"same state":     {do: func(s *session.Session) { read(s, 50) }},
		"token observed": {do: func(s *session.Session) { s.Observe(token.FromLSN(99)) }, header: true, write: true},
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PATCH", "OPTIONS"} {
			t.Run(name+" "+method, func(t *testing.T) {
				h := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { c.do(s) })
				resp := call(h, func(r *http.Request) {
					r.Method = method
					r.Header.Set(DefaultHeader, text(token.Entry{Key: here, Write: at(1, 40), Floor: at(1, 50)}))
				})
				if have := resp.Header.Get(DefaultHeader) != ""; have != c.header {
					t.Errorf("header: have %t, want %t", have, c.header)
				}
				if e, _ := tokenOf(t, resp).Entry(anybody); e.Wrote != c.open {
					t.Errorf("mark for what is open: have %t, want %t", e.Wrote, c.open)
				}
				j := set(resp)
				for kind, want := range map[string]bool{"w": c.write, "f": c.floor, "o": c.open} {
					if have := j.count(kind); (have == 1) != want || have > 1 {
						t.Errorf("cookies %q: have %d, want %t", kind, have, want)
					}
				}
			})
		}
	}
}

func TestTheHeaderHoldsEverything(t *testing.T) {
	h := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, 77) })
	tok := tokenOf(t, call(h, sends(token.Entry{Key: here, Write: at(1, 50), Floor: at(1, 60)})["several"]))
	mine, _ := tok.Entry(here)
	theirs, _ := tok.Entry(there)
	if mine.Write != at(1, 50) || mine.Floor != at(1, 77) || !theirs.Wrote {
		t.Errorf("have %+v and %+v", mine, theirs)
	}
}

func TestFloorsAndCaches(t *testing.T) {
	for name, c := range map[string]struct {
		header  http.Header
		floor   bool
		written bool // the header goes with a read
	}{
		"nothing said":       {http.Header{}, true, true},
		"private":            {http.Header{"Cache-Control": {"private, max-age=60"}}, true, true},
		"no-store":           {http.Header{"Cache-Control": {"no-store"}}, true, true},
		"no-cache":           {http.Header{"Cache-Control": {"no-cache"}}, true, true},
		"stale at once":      {http.Header{"Cache-Control": {"max-age=0, must-revalidate"}}, true, true},
		"max-age":            {http.Header{"Cache-Control": {"max-age=60"}}, false, false},
		"public":             {http.Header{"Cache-Control": {"Public"}}, false, false},
		"s-maxage":           {http.Header{"Cache-Control": {"no-transform", "s-maxage=60"}}, false, false},
		"expires":            {http.Header{"Expires": {"Mon, 30 Nov 2026 04:00:00 GMT"}}, false, false},
		"a CDN's own header": {http.Header{"Cache-Control": {"private"}, "Cdn-Cache-Control": {"max-age=60"}}, false, false},
		"a surrogate's":      {http.Header{"Cache-Control": {"no-store"}, "Surrogate-Control": {"max-age=60"}}, false, false},
	} {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, writes %t", name, writes), func(t *testing.T) {
				h := wrap(t, middleware(t, Config{}), func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
					for k, v := range c.header {
						w.Header()[k] = v
					}
					s.ReadNode(there, 5, mono.Now())
					if writes {
						wrote(s, 77)
					}
				})
				resp := call(h, nil)
				j := set(resp)
				if have := j.count("f") == 1; have != c.floor {
					t.Errorf("floor cookie: have %t, want %t", have, c.floor)
				}
				if have := resp.Header.Get(DefaultHeader) != ""; have != (c.written || writes) {
					t.Errorf("header: have %t", have)
				}
				if have := j.count("w") == 1; have != writes {
					t.Errorf("write cookie: have %t, want %t", have, writes)
				}
			})
		}
	}
}

func TestSwitchedOff(t *testing.T) {
	h := func(cfg Config) *http.Response {
		return call(wrap(t, middleware(t, cfg), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
			if cfg.NoHeader != s.Token().IsZero() {
				t.Errorf("have token %s", s.Token())
			}
			s.ReadNode(there, 5, mono.Now())
			wrote(s, 77)
		}), func(r *http.Request) { r.Header.Set("X-Consistency-Token", "0/1") })
	}
	if resp := h(Config{NoFloorCookies: true, Missing: MissingStale}); set(resp).count("f") != 0 || set(resp).count("w") != 1 || resp.Header.Get(DefaultHeader) == "" {
		t.Errorf("NoFloorCookies: have %v", resp.Header)
	}
	if resp := h(Config{NoCookies: true, Missing: MissingStale}); len(set(resp)) != 0 || resp.Header.Get(DefaultHeader) == "" {
		t.Errorf("NoCookies: have %v", resp.Header)
	}
	if resp := h(Config{NoHeader: true, Missing: MissingStale}); len(set(resp)) != 2 || resp.Header.Get(DefaultHeader) != "" {
		t.Errorf("NoHeader: have %v", resp.Header)
	}
}

func TestCookieAttributes(t *testing.T) {
	write := func(cfg Config) *http.Cookie {
		resp := call(wrap(t, middleware(t, cfg), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) }), nil)
		return resp.Cookies()[0]
	}
	k := write(Config{})
	if !strings.HasPrefix(k.Name, "ryw-w-") || k.Path != "/" || k.Domain != "" || k.MaxAge != 86400 || !k.Secure || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode {
		t.Errorf("by default: have %s", k)
	}
	k = write(Config{Cookie: Cookie{
		Name: "app", Path: "/shop", Domain: "example.com", MaxAge: time.Hour, SameSite: http.SameSiteStrictMode, Insecure: true, Readable: true,
	}})
	if !strings.HasPrefix(k.Name, "app-w-") || k.Path != "/shop" || k.Domain != "example.com" || k.MaxAge != 3600 || k.Secure || k.HttpOnly || k.SameSite != http.SameSiteStrictMode {
		t.Errorf("as configured: have %s", k)
	}
}

func TestRequestsWithoutAToken(t *testing.T) {
	for missing, c := range map[Missing]struct {
		marked bool
		status int
	}{MissingStrong: {true, 200}, MissingStale: {false, 200}, MissingRefused: {false, 428}} {
		m := middleware(t, Config{Missing: missing})
		served := false
		h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
			served = true
			var n session.Need
			s.Need(&n, here, time.Now().Add(-time.Hour))
			if n.Marked != c.marked || n.Aged {
				t.Errorf("%d: have marked %t, aged %t", missing, n.Marked, n.Aged)
			}
		})
		if have := call(h, nil).StatusCode; have != c.status || served != (c.status == 200) {
			t.Errorf("%d: have status %d, served %t", missing, have, served)
		}
		call(h, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "other", Value: "x"}) })
		want := Stats{Requests: 2, Missing: 2}
		if missing == MissingRefused {
			want.Refused = 2
		}
		if have := m.Stats(); have != want {
			t.Errorf("%d: have %+v, want %+v", missing, have, want)
		}
	}
}

// A client that says it has nothing to see does not miss its token.
func TestAnEmptyHeaderIsAToken(t *testing.T) {
	m := middleware(t, Config{Missing: MissingRefused})
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		if !s.Token().IsZero() {
			t.Errorf("have %s", s.Token())
		}
	})
	if resp := call(h, func(r *http.Request) { r.Header[DefaultHeader] = []string{""} }); resp.StatusCode != 200 {
		t.Errorf("have status %d", resp.StatusCode)
	}
}

// What stood in for the token is not handed on, but what the request itself left
// is.
func TestTheStandInDoesNotTravel(t *testing.T) {
	answer := func(do func(*session.Session)) token.Token {
		h := wrap(t, middleware(t, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { do(s) })
		return tokenOf(t, call(h, nil))
	}
	tok := answer(func(s *session.Session) { read(s, 77) })
	if e, ok := tok.Entry(anybody); ok || tok.Len() != 1 {
		t.Errorf("have %+v beside the read", e)
	}
	if e, _ := answer(func(s *session.Session) { s.MarkSawPrimary(anybody) }).Entry(anybody); !e.SeenPrimary {
		t.Error("a read of the request's own was forgotten")
	}
	if e, _ := answer(func(s *session.Session) { s.MarkWrote(anybody) }).Entry(anybody); !e.Wrote {
		t.Error("a write of the request's own was forgotten")
	}
}

func TestLateWrites(t *testing.T) {
	for protocol, start := range protocols {
		for _, strict := range []bool{false, true} {
			for name, c := range map[string]struct {
				do   func(s *session.Session, send func())
				want Stats
			}{
				"before":         {func(s *session.Session, send func()) { wrote(s, 77); send() }, Stats{Sent: 1}},
				"after":          {func(s *session.Session, send func()) { send(); wrote(s, 77) }, Stats{Late: 1}},
				"after, no LSN":  {func(s *session.Session, send func()) { send(); s.MarkWrote(here) }, Stats{Late: 1}},
				"both":           {func(s *session.Session, send func()) { wrote(s, 76); send(); wrote(s, 77) }, Stats{Sent: 1, Late: 1}},
				"reading after":  {func(s *session.Session, send func()) { wrote(s, 76); send(); read(s, 77) }, Stats{Sent: 1}},
				"failing after":  {func(s *session.Session, send func()) { wrote(s, 76); send(); s.MarkSawPrimary(here) }, Stats{Sent: 1}},
				"open":           {func(s *session.Session, send func()) { s.BeginWrite(); send(); wrote(s, 77); s.EndWrite() }, Stats{Sent: 1, Ahead: 1}},
				"marked already": {func(s *session.Session, send func()) { s.MarkWrote(here); send(); s.MarkWrote(here) }, Stats{Sent: 1}},
			} {
				t.Run(fmt.Sprintf("%s %s strict %t", protocol, name, strict), func(t *testing.T) {
					m := middleware(t, Config{Strict: strict, Missing: MissingStale})
					srv := start(t, wrap(t, m, func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
						c.do(s, func() { w.WriteHeader(202); w.(http.Flusher).Flush() })
					}))
					srv.Config.ErrorLog = log.New(io.Discard, "", 0)
					_, err := tryGet(t, srv, nil)
					if (err != nil) != (strict && c.want.Late > 0) {
						t.Errorf("the client sees %v", err)
					}
					c.want.Requests, c.want.Missing = 1, 1
					if have := m.Stats(); have != c.want {
						t.Errorf("have %+v, want %+v", have, c.want)
					}
				})
			}
		}
	}
}

// The mark of a transaction that is open outlives what is read meanwhile.
func TestAnOpenTransactionIsMarkedUntilItIsCertainlyOver(t *testing.T) {
	m := middleware(t, Config{})
	now := time.Now()
	m.now = func() time.Time { return now }
	browser := jar{}
	do := func(do func(*session.Session)) {
		h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { do(s) })
		browser.take(call(h, browser.give))
	}
	marked := func() bool {
		var n session.Need
		session.New(browser.token(t, "wfo")).Need(&n, here, time.Time{})
		return n.Marked
	}

	do(func(s *session.Session) { s.BeginWrite() })
	for range 5 { // which may all be older than what that transaction commits
		do(func(s *session.Session) { read(s, 70) })
		do(func(s *session.Session) { wrote(s, 71) })
		if !marked() {
			t.Fatalf("the mark is gone: %v", browser)
		}
	}
	now = now.Add(DefaultOpenFor + time.Second)
	do(func(s *session.Session) { read(s, 90) })
	if marked() || browser.count("o") != 0 {
		t.Errorf("the mark stays: %v", browser)
	}
	if e, _ := browser.token(t, "w").Entry(here); e.Write.Compare(at(1, 90)) < 0 {
		t.Errorf("have %s instead of the mark, want 1:0/5A", e.Write)
	}
}

// Middlewares may be wrapped into each other, and a session may be there already.
func TestASessionThatIsThereIsUsed(t *testing.T) {
	outer, inner := middleware(t, Config{NoCookies: true}), middleware(t, Config{NoHeader: true, Missing: MissingStale})
	var seen *session.Session
	h := outer.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = sessionOf(t, r)
		wrap(t, inner, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
			if s != seen {
				t.Error("have another session")
			}
			wrote(s, 77)
		}).ServeHTTP(w, r)
	}))
	resp := call(h, nil)
	wantWrite(t, tokenOf(t, resp), 77)
	wantWrite(t, set(resp).token(t, "w"), 77)
}

func TestConfigurationsThatMakeNoSense(t *testing.T) {
	for part, cfg := range map[string]Config{
		"Header: have":                    {Header: "A B"},
		"NoCookies: is set together":      {NoHeader: true, NoCookies: true},
		"StoreKey: have false":            {Store: NewMemoryStore(0, 0)},
		"StoreTimeout: have -1s":          {StoreTimeout: -time.Second},
		"Missing: have 3":                 {Missing: 3},
		"Invalid: have 2":                 {Invalid: 2},
		"OpenFor: have -1s":               {OpenFor: -time.Second},
		`Cookie.Name: have "a=b"`:         {Cookie: Cookie{Name: "a=b"}},
		`Cookie.Name: have "a\r\n"`:       {Cookie: Cookie{Name: "a\r\n"}},
		`have "__Host-ryw", which`:        {Cookie: Cookie{Name: "__Host-ryw", Path: "/shop"}},
		`have "__Secure-r", which`:        {Cookie: Cookie{Name: "__Secure-r", Insecure: true}},
		`Cookie.Path: have "shop"`:        {Cookie: Cookie{Path: "shop"}},
		"Cookie: http: invalid":           {Cookie: Cookie{Path: "/a;b"}},
		"Cookie: http: invalid Cookie.Do": {Cookie: Cookie{Domain: "a b"}},
		"Cookie.MaxAge: have 1ms":         {Cookie: Cookie{MaxAge: time.Millisecond}},
		"Cookie.SameSite: None is set":    {Cookie: Cookie{SameSite: http.SameSiteNoneMode, Insecure: true}},
		"Cookie.Slots: have 1":            {Cookie: Cookie{Slots: 1}},
	} {
		if _, err := New(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), part) {
			t.Errorf("have %v, want ErrConfig with %q", err, part)
		}
	}
	if _, err := New(Config{Cookie: Cookie{Name: "__Host-ryw"}}); err != nil {
		t.Errorf("__Host-: %v", err)
	}
}
