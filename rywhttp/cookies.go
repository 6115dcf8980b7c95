package rywhttp

import (
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// kind says what a cookie is for; it is part of its name, "ryw-w-Xq3_a".
type kind byte

const (
	// kindWrite is set by writes, and by reads that found the position of one.
	kindWrite kind = 'w'
	// kindFloor is set by reads.
	kindFloor kind = 'f'
	// kindOpen is the mark of a transaction that was open when the headers were
	// sent. What is read meanwhile may be older than what it commits, so the mark
	// stays for OpenFor, whatever position was asked for.
	kindOpen kind = 'o'
)

// held is a cookie of ours that a request came with.
type held struct {
	kind    kind
	slot    string
	bad     bool // no token of ours
	settled bool // of kindOpen and older than OpenFor: the mark of a write like any other
}

const (
	slotLen    = 5 // a new one: 30 random bits
	maxSlotLen = 8
	slotChars  = alphanumeric + "-_"
)

// scan returns the cookies of ours among a request's: name and value, without
// looking at values and without allocating.
func (c *Config) scan(h http.Header) iter.Seq2[held, string] {
	return func(yield func(held, string) bool) {
		for _, line := range h["Cookie"] {
			for part := range strings.SplitSeq(line, ";") {
				name, value, _ := strings.Cut(strings.Trim(part, " \t"), "=")
				if k, ok := c.parseName(name); ok && !yield(k, value) {
					return
				}
			}
		}
	}
}

func (c *Config) parseName(name string) (held, bool) {
	rest, found := strings.CutPrefix(name, c.Cookie.Name)
	if !found || len(rest) < 4 || len(rest) > 3+maxSlotLen || rest[0] != '-' || rest[2] != '-' {
		return held{}, false
	}
	h := held{kind: kind(rest[1]), slot: rest[3:]}
	known := h.kind == kindWrite || h.kind == kindFloor || h.kind == kindOpen
	return h, known && strings.Trim(h.slot, slotChars) == ""
}

// cookie returns the cookie that holds t.
func (c *Config) cookie(k kind, slot string, t token.Token) *http.Cookie {
	return &http.Cookie{
		Name: c.Cookie.Name + "-" + string(k) + "-" + slot, Value: c.text(t),
		Path: c.Cookie.Path, Domain: c.Cookie.Domain, MaxAge: int(c.Cookie.MaxAge / time.Second),
		Secure: !c.Cookie.Insecure, HttpOnly: !c.Cookie.Readable, SameSite: c.Cookie.SameSite,
	}
}

// maxRemoved bounds how many cookies one response removes, as proxies bound how
// long its headers may be. The next response removes more.
const maxRemoved = 16

// set has the browser hold t, and removes cookies whose contents t includes. It
// takes a slot that the request did not come with: a name that is used once is
// never written over, so in whatever order responses arrive, the browser does not
// end up with less.
func (c *Config) set(h http.Header, k kind, t token.Token, have, gone []held) {
	slot := c.freeSlot(k, have)
	h.Add("Set-Cookie", c.cookie(k, slot, t).String())
	removed := 0
	for _, g := range gone {
		if g.kind == k && g.slot == slot {
			continue
		}
		if removed++; removed > maxRemoved {
			return
		}
		old := c.cookie(g.kind, g.slot, token.Token{})
		old.MaxAge = -1
		h.Add("Set-Cookie", old.String())
	}
}

// freeSlot returns a name that none of the cookies of the kind has, if there is
// one.
func (c *Config) freeSlot(k kind, have []held) string {
	n := c.Cookie.Slots
	if n == 0 {
		return randomSlot()
	}
	at := rand.IntN(n)
	for i := range n {
		slot := strconv.Itoa((at + i) % n)
		if !holds(have, k, slot) {
			return slot
		}
	}
	return strconv.Itoa(at) // all of them are replaced by this one
}

func holds(have []held, k kind, slot string) bool {
	for _, h := range have {
		if h.kind == k && h.slot == slot {
			return true
		}
	}
	return false
}

func randomSlot() string {
	var b [slotLen]byte
	for i := range b {
		b[i] = slotChars[rand.IntN(len(slotChars))]
	}
	return string(b[:])
}
