package rywhttp

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func testSigner(t testing.TB, ids ...string) *token.Signer {
	t.Helper()
	var keys []token.Secret
	for _, id := range ids {
		keys = append(keys, token.Secret{ID: id, Key: bytes.Repeat([]byte(id), 20)})
	}
	s, err := token.NewSigner(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignedTokens(t *testing.T) {
	signer := testSigner(t, "k1")
	m := middleware(t, Config{Signer: signer})
	browser := jar{}
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) })
	resp := call(h, nil)
	browser.take(resp)
	header := resp.Header.Get(DefaultHeader)
	if tok, err := signer.Verify(header); err != nil {
		t.Fatalf("header %q: %v", header, err)
	} else {
		wantWrite(t, tok, 77)
	}
	look := func(send func(*http.Request)) (got token.Token) {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { got = s.Token() }), send)
		return got
	}
	wantWrite(t, look(browser.give), 77)
	wantWrite(t, look(func(r *http.Request) { r.Header.Set(DefaultHeader, header) }), 77)

	// The key goes to the second place, and then away.
	for i, keys := range [][]string{{"k2", "k1"}, {"k2"}} {
		next := testSigner(t, keys...)
		*m = *middleware(t, Config{Signer: next})
		look(browser.give)
		if have := m.Stats().Invalid; have != int64(i) {
			t.Errorf("keys %v: have %d invalid, want %d", keys, have, i)
		}
	}
}

// forgeries are what somebody without the key can send.
func forgeries(t testing.TB) map[string]string {
	good := testSigner(t, "k1").Sign(token.FromEntries(token.Entry{Key: here, Write: at(1, 50)}))
	return map[string]string{
		"unsigned":      text(token.Entry{Key: here, Write: at(1, 50)}),
		"bare LSN":      "FFFFFF/FFFFFFFF",
		"far future":    text(token.Entry{Key: here, Write: at(2000000, 1<<55)}),
		"other key":     testSigner(t, "k9").Sign(token.FromLSN(7)),
		"same id":       strings.Replace(testSigner(t, "k9").Sign(token.FromLSN(7)), "k9", "k1", 1),
		"another's MAC": text(token.Entry{Key: here, Write: at(1, 60)}) + good[strings.LastIndex(good, ".k1."):],
		"truncated":     good[:len(good)-1],
		"longer":        good + "A",
		"oversized":     "r1." + strings.Repeat("A", 1<<16) + ".k1.AAAA",
		"escapes":       "r1.\x1b[2J\x00%0d%0aSet-Cookie:%20a=b",
	}
}

// A forged token neither refuses nor pins: the request reads what is current, once
// one position of the primary was asked for.
func TestForgedTokens(t *testing.T) {
	for name, forged := range forgeries(t) {
		for place, send := range map[string]func(*http.Request){
			"header": func(r *http.Request) { r.Header.Set(DefaultHeader, forged) },
			"cookie": func(r *http.Request) { r.Header.Set("Cookie", "ryw-w-a="+forged) },
		} {
			t.Run(place+" "+name, func(t *testing.T) {
				m := middleware(t, Config{Signer: testSigner(t, "k1")})
				h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
					var n session.Need
					if s.Need(&n, here, time.Time{}); !n.Position.IsZero() || n.Bare != 0 || !n.Marked {
						t.Errorf("the forged position is waited for: %+v", n)
					}
					read(s, 77)
					n = session.Need{}
					if s.Need(&n, here, time.Time{}); n.PrimaryOnly() || n.Position != at(1, 77) {
						t.Errorf("the request is pinned: %+v", n)
					}
				})
				resp := call(h, send)
				if m.Stats().Invalid != 1 || resp.StatusCode != 200 {
					t.Errorf("have %+v, status %d", m.Stats(), resp.StatusCode)
				}
				for _, line := range append(resp.Header["Set-Cookie"], resp.Header[DefaultHeader]...) {
					if strings.Contains(line, forged) || strings.ContainsAny(line, "\r\n\x00\x1b") {
						t.Errorf("the answer repeats it: %q", line)
					}
				}
			})
		}
	}
}

// Whoever replays a token or brings one of another cluster waits for what it says,
// and for nobody else.
func TestReplayedAndForeignTokens(t *testing.T) {
	signer := testSigner(t, "k1")
	m := middleware(t, Config{Signer: signer})
	foreign := signer.Sign(token.FromEntries(token.Entry{Key: there, Write: at(9, 1<<50)}))
	for range 3 {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
			var n session.Need
			if s.Need(&n, here, time.Time{}); !n.None() {
				t.Errorf("this cluster is asked for %+v", n)
			}
		}), func(r *http.Request) { r.Header.Set(DefaultHeader, foreign) })
	}
	call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		if _, ok := s.Token().Entry(there); ok {
			t.Error("one client's token is another's")
		}
	}), nil)
}

// flood is a request with thousands of cookies of ours.
func flood(n int, value string) http.Header {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "ryw-w-%05d=%s; ", i, value)
	}
	return http.Header{"Cookie": {b.String()}}
}

func TestThousandsOfCookies(t *testing.T) {
	m := middleware(t, Config{Signer: testSigner(t, "k1")})
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, 77) })
	for name, value := range map[string]string{
		"empty": "", "garbage": "x", "unsigned": text(token.Entry{Key: here, Write: at(1, 5)}),
		"forged": text(token.Entry{Key: here, Write: at(1, 5)}) + ".k1." + strings.Repeat("A", 43),
		"valid":  testSigner(t, "k1").Sign(token.FromEntries(token.Entry{Key: here, Write: at(1, 5)})),
	} {
		header := flood(9000, value)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = header
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<19 {
			t.Errorf("%s: %d bytes allocated for %d of cookies", name, used, len(header["Cookie"][0]))
		}
		if n := len(w.Header()["Set-Cookie"]); n > 2+maxRemoved {
			t.Errorf("%s: the answer sets %d cookies", name, n)
		}
	}
}

// Cookies of others are not looked at, however many there are.
func TestCookiesOfOthersCostNothing(t *testing.T) {
	cfg := Config{}.withDefaults()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["Cookie"] = []string{strings.Repeat("rywx-w-a=1; other=2; ryw-w-=3; ryw-x-a=4; ryw-w-a.b=5; ryw-w-123456789=6; =; ;", 500)}
	allocs := testing.AllocsPerRun(10, func() {
		if in := cfg.receive(r, time.Time{}); in.any {
			t.Fatalf("have %+v", in.held)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A name or a value with a line break does not come past net/http, in or out.
func TestHeaderSplitting(t *testing.T) {
	var logged bytes.Buffer
	srv := httptest.NewUnstartedServer(wrap(t, middleware(t, Config{Cookie: Cookie{Insecure: true}}),
		func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) }))
	srv.Config.ErrorLog = log.New(&logged, "", 0)
	srv.Start()
	defer srv.Close()
	for _, line := range []string{
		"Cookie: ryw-w-a=r1.AA%0d%0aX-Evil: 1", "Cookie: ryw-w-a\x00=1", "Cookie: ryw-w-a=\"r1.AA\\\"; X-Evil=1\"",
		"X-Consistency-Token: r1.AA\x0bX-Evil: 1", "X-Consistency-Token: \x7f\xff", "X-Consistency-Token:\r\n X-Evil: 1",
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n\r\n", line)
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || len(answer) == 0 {
			t.Fatalf("%q: have %q, %v", line, answer, err)
		}
		head, _, _ := strings.Cut(string(answer), "\r\n\r\n")
		if strings.Contains(head, "Evil") {
			t.Errorf("%q: have %q", line, head)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("logged %q", logged.String())
	}
}

var goodSetCookie = regexp.MustCompile(`^ryw-[wfo]-[A-Za-z0-9_-]{1,8}=[A-Za-z0-9._-]*; Path=/; Max-Age=[0-9]+; HttpOnly; Secure; SameSite=Lax$`)

func FuzzRequest(f *testing.F) {
	for _, forged := range forgeries(f) {
		f.Add("ryw-w-a="+forged, forged)
	}
	f.Add("ryw-w-a=0/1; ryw-f-b=0/2; ryw-o-c=0/3", "0/1,0/2,")
	f.Add("ryw-w-=;;=;ryw-w-a", ",,,")
	f.Add(`ryw-w-a="0/1"`, " 0/1 ")
	good := testSigner(f, "k1").Sign(token.FromEntries(token.Entry{Key: here, Write: at(1, 50), Wrote: true}))
	f.Add("ryw-w-a="+good, good)
	unsigned, signed := middleware(f, Config{}), middleware(f, Config{Signer: testSigner(f, "k1")})
	f.Fuzz(func(t *testing.T, cookie, header string) {
		for _, m := range []*Middleware{unsigned, signed} {
			var want token.Token // of what is certainly valid
			if tok, err := m.cfg.parse(header); err == nil && !strings.ContainsAny(header, ", \t") {
				want = tok
			}
			h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
				if have := s.Token(); !have.Others() {
					for _, e := range want.Entries() {
						if got, _ := have.Entry(e.Key); got.Write.Compare(e.Write) < 0 || e.Wrote && !got.Wrote {
							t.Fatalf("have %+v, want at least %+v", got, e)
						}
					}
				}
				s.ReadNode(there, 5, mono.Now())
				wrote(s, 77)
			})
			resp := call(h, func(r *http.Request) {
				r.Header["Cookie"], r.Header[DefaultHeader] = []string{cookie}, []string{header}
			})
			if tok, err := m.cfg.parse(resp.Header.Get(DefaultHeader)); err != nil || tok.IsZero() {
				t.Fatalf("have header %q: %v", resp.Header.Get(DefaultHeader), err)
			}
			for _, line := range resp.Header["Set-Cookie"] {
				if !goodSetCookie.MatchString(line) || len(line) > token.MaxText+200 {
					t.Fatalf("have cookie %q", line)
				}
			}
			if len(resp.Header["Set-Cookie"]) == 0 {
				t.Fatal("no cookie was set")
			}
		}
	})
}
