package rywhttp

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// garbage is what is no token.
var garbage = map[string]func(*http.Request){
	"header":  func(r *http.Request) { r.Header.Set(DefaultHeader, "r1.AAAA") },
	"cookie":  func(r *http.Request) { jar{"ryw-w-a": "garbage"}.give(r) },
	"floor":   func(r *http.Request) { jar{"ryw-f-a": "r9.x", "ryw-w-a": "0/1"}.give(r) },
	"too big": func(r *http.Request) { r.Header.Set(DefaultHeader, "r1."+strings.Repeat("A", token.MaxText)) },
	"one of two": func(r *http.Request) {
		r.Header[DefaultHeader] = []string{text(token.Entry{Key: here, Write: at(1, 5)}), "x"}
	},
	"too many headers": func(r *http.Request) { r.Header[DefaultHeader] = []string{strings.Repeat("0/1,", 100) + "0/1"} },
	"too many cookies": func(r *http.Request) {
		r.Header.Set("Cookie", strings.Repeat("ryw-w-a=0/1; ", MaxCookies+1))
	},
}

func TestInvalidTokens(t *testing.T) {
	for name, send := range garbage {
		t.Run(name, func(t *testing.T) {
			m := middleware(t, Config{})
			h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
				var n session.Need
				s.Need(&n, here, time.Time{})
				if !n.Marked {
					t.Error("the request may read what is older than itself")
				}
			})
			wantNothing(t, call(h, send))
			if have := m.Stats(); have.Invalid != 1 || have.Missing != 0 {
				t.Errorf("have %+v", have)
			}

			var got error
			m = middleware(t, Config{Invalid: InvalidRefused, Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
				got = err
				w.WriteHeader(418)
			}})
			if resp := call(wrap(t, m, nil), send); resp.StatusCode != 418 || !errors.Is(got, token.ErrInvalid) {
				t.Errorf("have status %d, %v", resp.StatusCode, got)
			}
			resp := call(wrap(t, middleware(t, Config{Invalid: InvalidRefused}), nil), send)
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 400 || string(body) != "consistency token invalid\n" {
				t.Errorf("have status %d, %q", resp.StatusCode, body)
			}
		})
	}
}

// A browser gets rid of what it cannot use, and has something as good instead.
func TestABadCookieIsReplaced(t *testing.T) {
	for _, name := range []string{"ryw-w-a", "ryw-f-b", "ryw-o-c"} {
		for _, cfg := range []Config{{}, {NoFloorCookies: true}} {
			browser := jar{name: "garbage"}
			h := wrap(t, middleware(t, cfg), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, 77) })
			browser.take(call(h, browser.give))
			wantNeed(t, browser.token(t, "wfo"), 77) // fails if there is garbage still
		}
	}
}

func wantNeed(t *testing.T, tok token.Token, lsn uint64) {
	t.Helper()
	var n session.Need
	session.New(tok).Need(&n, here, time.Time{})
	if n.Marked || n.Position != at(1, lsn) {
		t.Errorf("have marked %t, position %s, want %d", n.Marked, n.Position, lsn)
	}
}

// The mark of a writer that knew no cluster costs a position query once, not with
// every request.
func TestAMarkOfAnyClusterIsResolvedOnce(t *testing.T) {
	browser := jar{"ryw-w-a": text(token.Entry{Wrote: true})}
	h := wrap(t, middleware(t, Config{NoFloorCookies: true}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, 77) })
	browser.take(call(h, browser.give))
	wantNeed(t, browser.token(t, "w"), 77)
	if browser.count("w") != 1 {
		t.Errorf("have %v", browser)
	}
}

func TestOnlyTheStandInIsTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		e    token.Entry
		gone bool
	}{
		"the stand-in":     {token.Entry{SeenPrimary: true}, true},
		"a dated one":      {token.Entry{SeenPrimary: true, Minted: time.Now()}, false},
		"a write":          {token.Entry{SeenPrimary: true, Wrote: true}, false},
		"a position":       {token.Entry{SeenPrimary: true, Write: at(0, 5)}, false},
		"of one cluster's": {token.Entry{Key: here, SeenPrimary: true}, false},
	} {
		if have := withoutMissing(token.FromEntries(c.e)).IsZero(); have != c.gone {
			t.Errorf("%s: gone %t, want %t", name, have, c.gone)
		}
	}
}

// What is split into cookies asks for the same when it comes back together.
func TestTheTwoPartsAreTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	keys := []token.Key{anybody, here, there, {Name: 3}, {System: 11, Name: 3}}
	for range 3000 {
		s := session.New()
		for range 1 + rng.IntN(5) {
			key, lsn := keys[rng.IntN(len(keys))], 1+rng.Uint64N(90)
			switch rng.IntN(5) {
			case 0:
				s.MarkWrote(key)
			case 1:
				s.MarkSawPrimary(key)
			case 2:
				s.Observe(token.FromEntries(token.Entry{Key: key, Write: at(uint32(1+lsn%2), lsn), SeenNodes: []token.Incarnation{4}}))
			default:
				s.Advance(key, at(1, lsn), mono.Now(), lsn%2 == 0)
			}
		}
		tok := s.Token()
		both := writePart(tok, token.Token{}).Merge(readPart(tok))
		for _, key := range keys {
			var want, have session.Need
			session.New(tok).Need(&want, key, time.Time{})
			session.New(both).Need(&have, key, time.Time{})
			if have.Position != want.Position || have.Bare != want.Bare || have.Marked != want.Marked || len(have.Reads()) != len(want.Reads()) {
				t.Fatalf("%s of %+v\nhave %+v: %s marked %t\nwant %s marked %t", key, tok.Entries(), both.Entries(), have.Position, have.Marked, want.Position, want.Marked)
			}
		}
	}
}

// A token over its age is replaced by a floor; the cookie of the write must not go
// for nothing.
func TestAnAgedWriteIsKept(t *testing.T) {
	was := token.FromEntries(token.Entry{Key: here, Write: at(1, 50)}, token.Entry{Key: there, Wrote: true})
	s := session.New(was)
	s.Renew(here, at(1, 90), mono.Now()+1e9)
	s.Renew(there, at(1, 91), mono.Now()+2e9)
	tok := writePart(s.Token(), was)
	wantWrite(t, tok, 90)
	if e, _ := tok.Entry(there); e.Write != at(1, 91) {
		t.Errorf("have %+v", e)
	}
}
