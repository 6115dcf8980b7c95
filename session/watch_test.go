package session

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// received is what a session may come with.
var received = map[string]token.Token{
	"nothing":      {},
	"positions":    token.FromEntries(token.Entry{Key: here, Write: at(1, 50), Floor: at(1, 60), Minted: time.UnixMilli(1000)}),
	"read mark":    token.FromEntries(token.Entry{Key: here, SeenPrimary: true, Minted: time.UnixMilli(1000)}),
	"read node":    token.FromEntries(token.Entry{Key: here, SeenNodes: []token.Incarnation{5}, Minted: time.UnixMilli(1000)}),
	"write mark":   token.FromEntries(token.Entry{Key: here, Wrote: true, Minted: time.UnixMilli(1000)}),
	"write of any": token.FromEntries(token.Entry{Wrote: true, Minted: time.UnixMilli(1000)}),
}

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*Session)
		want Changes
	}{
		"nothing":               {func(*Session) {}, Changes{}},
		"write":                 {func(s *Session) { s.Advance(here, at(1, 90), later(), true) }, Changes{Wrote: true}},
		"write, no position":    {func(s *Session) { s.MarkWrote(here) }, Changes{Wrote: true}},
		"write, no cluster":     {func(s *Session) { s.MarkWrote(nowhere) }, Changes{Wrote: true}},
		"write elsewhere":       {func(s *Session) { s.Advance(there, at(1, 9), later(), true) }, Changes{Wrote: true}},
		"write, newer timeline": {func(s *Session) { s.Advance(here, at(2, 9), later(), true) }, Changes{Wrote: true}},
		"read elsewhere":        {func(s *Session) { s.Advance(there, at(1, 9), later(), false) }, Changes{Read: true}},
		"read node":             {func(s *Session) { s.ReadNode(here, 5, later()) }, Changes{Read: true}},
		"read other node":       {func(s *Session) { s.ReadNode(here, 6, later()) }, Changes{Read: true}},
		"read, node settled":    {func(s *Session) { s.ReadNode(here, 6, later()); s.SettleRead(here, 6, at(1, 99), later()) }, Changes{Read: true}},
		"read of who knows":     {func(s *Session) { s.ReadNode(here, 0, later()) }, Changes{Read: true}},
		"open":                  {func(s *Session) { s.BeginWrite() }, Changes{Open: true}},
		"open and ended":        {func(s *Session) { s.BeginWrite(); s.EndWrite() }, Changes{}},
		"awaited":               {func(s *Session) { s.Await(here, func() bool { return false }) }, Changes{Wrote: true, Open: true}},
		"token":                 {func(s *Session) { s.Observe(token.FromLSN(77)) }, Changes{Wrote: true}},
		"same tokens":           {func(s *Session) { s.Observe(s.Token()) }, Changes{}},
	} {
		for with, tok := range received {
			t.Run(name+" with "+with, func(t *testing.T) {
				s := New(tok)
				w := s.Watch()
				c.do(s)
				have := w.Changes()
				// Beside a mark that is pending anything may be what it is about again.
				pending := with == "write mark" || with == "read mark" || name == "same tokens"
				if have.Wrote != c.want.Wrote && !(pending && have.Wrote) ||
					have.Read != c.want.Read && !(pending && have.Read) || have.Open != c.want.Open {
					t.Errorf("have wrote %t, read %t, open %t, want %t, %t, %t",
						have.Wrote, have.Read, have.Open, c.want.Wrote, c.want.Read, c.want.Open)
				}
				if name == "nothing" && (have.Wrote || have.Read) {
					t.Error("nothing was done")
				}
				if next := w.Changes(); next.Wrote != have.Wrote || next.Read != have.Read {
					t.Error("asking again changes the answer")
				}
			})
		}
	}
}

// A write that failed is a mark of a read, and no write, unless one of unknown
// position is pending, from which it cannot be told.
func TestChangesByAFailedWrite(t *testing.T) {
	for with, tok := range received {
		s := New(tok)
		w := s.Watch()
		s.MarkSawPrimary(here)
		if c := w.Changes(); !c.Read || c.Wrote != (with == "write mark") {
			t.Errorf("with %s: have wrote %t, read %t", with, c.Wrote, c.Read)
		}
	}
}

// Positions that come out as they were are nothing to tell anybody about.
func TestChangesByReadingTheSameState(t *testing.T) {
	s := New(received["positions"])
	w := s.Watch()
	s.Advance(here, at(1, 60), later(), false)
	if c := w.Changes(); c.Read || c.Wrote {
		t.Errorf("have wrote %t, read %t, want neither", c.Wrote, c.Read)
	}
	s.Advance(here, at(1, 61), later(), false)
	if c := w.Changes(); !c.Read || c.Wrote {
		t.Errorf("one further: have wrote %t, read %t, want only read", c.Wrote, c.Read)
	}
}

// What the session came with was a write whose position is known now: whoever
// holds the mark had better hold the position.
func TestChangesByResolvingAMark(t *testing.T) {
	s := New(received["write mark"])
	w := s.Watch()
	s.Advance(here, at(1, 60), later(), false)
	c := w.Changes()
	if e, _ := c.Token.Entry(here); !c.Wrote || e.Wrote || e.Write != at(1, 60) {
		t.Errorf("have wrote %t, entry %+v", c.Wrote, e)
	}
}

func TestChangesWithoutRoom(t *testing.T) {
	var entries []token.Entry
	for i := range token.MaxEntries {
		entries = append(entries, token.Entry{Key: token.Key{System: uint64(i + 1)}, Write: at(1, 1)})
	}
	s := New(token.FromEntries(entries...))
	w := s.Watch()
	s.Advance(token.Key{System: 999}, at(1, 90), later(), true)
	if c := w.Changes(); !c.Wrote || !c.Token.Others() {
		t.Errorf("have wrote %t, others %t", c.Wrote, c.Token.Others())
	}
}

// The moments of two watches are their own.
func TestTwoWatches(t *testing.T) {
	s := New()
	first := s.Watch()
	s.MarkWrote(here)
	second := s.Watch()
	if !first.Changes().Wrote || second.Changes().Wrote {
		t.Errorf("have %t, %t, want only the first to see the write", first.Changes().Wrote, second.Changes().Wrote)
	}
}
