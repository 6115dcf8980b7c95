package rywhttp

import (
	"net/http"
	"slices"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// tidyAbove is how many cookies of writes a browser may hold before a read merges
// them.
const tidyAbove = 3

// respond writes back what the session did for the request.
func (m *Middleware) respond(h http.Header, in *received, c session.Changes) {
	if !c.Wrote && !c.Read && !c.Open {
		return
	}
	cfg, public := &m.cfg, publiclyCacheable(h)
	if !cfg.NoHeader && (c.Wrote || c.Open || !public) {
		h.Set(cfg.Header, cfg.text(withOpen(c)))
	}
	if !cfg.NoCookies {
		cfg.writeCookies(h, in, c)
		if c.Read && !cfg.NoFloorCookies && !public {
			cfg.floorCookie(h, in, c)
		}
	}
	m.stats.sent.Add(1)
}

// writeCookies sets the cookies that stand for writes.
func (c *Config) writeCookies(h http.Header, in *received, did session.Changes) {
	if did.Open {
		c.set(h, kindOpen, openMark(), in.held, nil)
	}
	gone := in.which(held.replacedByWrite)
	if !did.Wrote && !in.untidy(gone) && !resolved(in.writes, did.Token) {
		return
	}
	if t := writePart(did.Token, in.writes); !t.IsZero() {
		c.set(h, kindWrite, t, in.held, gone)
	}
}

// untidy reports whether the cookies that a write would replace should be replaced
// without one.
func (in *received) untidy(gone []held) bool {
	return in.err != nil || len(gone) > tidyAbove ||
		slices.ContainsFunc(gone, func(g held) bool { return g.settled })
}

// floorCookie sets the cookie that stands for reads.
func (c *Config) floorCookie(h http.Header, in *received, did session.Changes) {
	if t := readPart(did.Token); !t.IsZero() {
		c.set(h, kindFloor, t, in.held, in.which(func(g held) bool { return g.kind == kindFloor && !g.bad }))
	}
}

// replacedByWrite reports whether a write's cookie holds what h held. It holds
// everything, so it replaces what nobody could read as well.
func (h held) replacedByWrite() bool { return h.kind == kindWrite || h.settled || h.bad }

func (in *received) which(are func(held) bool) []held {
	var some []held
	for _, h := range in.held {
		if are(h) {
			some = append(some, h)
		}
	}
	return some
}

// resolved reports whether now has the position of a write that was but a mark.
func resolved(was, now token.Token) bool {
	for i := range was.Len() {
		e := was.At(i)
		if n, _ := now.Entry(e.Key); e.Wrote && !n.Wrote {
			return true
		}
	}
	for i := range now.Len() {
		e := now.At(i)
		if old, _ := was.Entry(e.Key); e.BroadCovered && !old.BroadCovered && was.BroadPending(e.Key) {
			return true
		}
	}
	return false
}

// writePart returns what t says of writes: at least what was says, which t covers.
func writePart(t, was token.Token) token.Token {
	if t.Others() {
		return t // which names only some of what it is about
	}
	entries := t.Entries()
	for i := range entries {
		e := &entries[i]
		floor := e.Floor
		e.Floor, e.SeenPrimary, e.SeenNodes = token.Position{}, false, nil
		old, _ := was.Entry(e.Key)
		lost := e.Write.Compare(old.Write) < 0 || e.Write.IsZero() && old.Wrote && !e.Wrote
		if e.BroadCovered || lost {
			// The position that covers a write is one that was read: of a mark of
			// many clusters, or where a token had outlived its age.
			entries = append(entries, token.Entry{Key: e.Key, Write: floor, BroadCovered: e.BroadCovered})
		}
	}
	return token.FromEntries(entries...)
}

// readPart returns what t says of reads and does not say of writes as well.
func readPart(t token.Token) token.Token {
	if t.Others() {
		return t
	}
	entries := t.Entries()
	for i := range entries {
		e := &entries[i]
		switch {
		case e.BroadCovered:
			e.Floor = e.Floor.Max(e.Write)
		case e.Floor.Compare(e.Write) <= 0:
			e.Floor = token.Position{}
		}
		e.Write, e.Former, e.Wrote = token.Position{}, token.Position{}, false
	}
	return token.FromEntries(entries...)
}

// withOpen is the token with the mark of a transaction under way.
func withOpen(c session.Changes) token.Token {
	if c.Open {
		return c.Token.Merge(openMark())
	}
	return c.Token
}

// openMark is the mark of a write of any cluster.
func openMark() token.Token {
	return token.Token{}.Mark(token.Key{}, token.Marks{Wrote: true}, time.Now())
}

// nothingMissed is the mark that a request without a token gets: whatever was seen
// of the primary before it. It is never handed on; a mark of the request's own has
// a time.
var nothingMissed = token.Token{}.Mark(token.Key{}, token.Marks{SeenPrimary: true}, time.Time{})

func withoutMissing(t token.Token) token.Token {
	if e, ok := t.Entry(token.Key{}); ok && e.Minted.IsZero() && !e.Wrote && e.Write.IsZero() {
		return t.Replace(token.Entry{})
	}
	return t
}
