package session

import (
	"context"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/token"
)

func TestZeroSessionNeedsNothing(t *testing.T) {
	var s Session
	wantNeed(t, &s, here, Need{})
	if n := needOf(&s, here); !n.None() || n.PrimaryOnly() || !n.Want().IsZero() {
		t.Errorf("have %s", describe(n))
	}
	if !s.Token().IsZero() {
		t.Errorf("token: have %s", s.Token())
	}
}

func TestNewStartsFromItsTokens(t *testing.T) {
	s := New(
		token.FromEntries(token.Entry{Key: here, Write: at(1, 100)}), token.Token{},
		token.FromEntries(token.Entry{Key: here, Floor: at(1, 200)}, token.Entry{Key: there, Wrote: true}),
	)
	wantNeed(t, s, here, Need{Position: at(1, 200)})
	wantNeed(t, s, there, Need{Marked: true})
}

func TestContextCarriesASession(t *testing.T) {
	ctx := context.Background()
	if s, ok := FromContext(ctx); ok || s != nil {
		t.Error("a session in an empty context")
	}
	s := New()
	ctx = NewContext(ctx, s)
	if have, ok := FromContext(ctx); !ok || have != s {
		t.Error("not the session that was put in")
	}
	var into token.Token
	if have, _ := FromContext(Collect(ctx, &into)); have != s {
		t.Error("a collector took the session's place")
	}
	without := NewContext(ctx, nil)
	if have, ok := FromContext(without); ok || have != nil {
		t.Error("a session after it was taken away")
	}
	if have, _ := FromContext(ctx); have != s {
		t.Error("taken away from the outer context, too")
	}
}

// A position is known by a query that began after the write returned.
func TestAdvanceRecordsAWrite(t *testing.T) {
	s := New()
	s.Advance(here, at(1, 100), later(), true)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	wantNeed(t, s, there, Need{})
	e, _ := s.Token().Entry(here)
	if e.Write != at(1, 100) || !e.Floor.IsZero() || e.Minted.IsZero() || e.Marked() {
		t.Errorf("entry: have %+v", e)
	}
}

func TestAdvanceRecordsAFloor(t *testing.T) {
	s := New()
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	if e, _ := s.Token().Entry(here); e.Floor != at(1, 100) || !e.Write.IsZero() {
		t.Errorf("entry: have %+v", e)
	}
}

func TestPositionsNeverGoBack(t *testing.T) {
	s := New()
	s.Advance(here, at(1, 100), later(), true)
	s.Advance(here, at(1, 90), later(), true)
	s.Advance(here, at(1, 80), later(), false)
	s.Observe(token.FromEntries(token.Entry{Key: here, Write: at(1, 70), Floor: at(1, 60)}))
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	s.Advance(here, at(2, 50), later(), false) // a later timeline is later
	wantNeed(t, s, here, Need{Position: at(2, 50)})
}

func TestMarks(t *testing.T) {
	for name, mark := range map[string]func(*Session, token.Key){
		"wrote": (*Session).MarkWrote, "saw primary": (*Session).MarkSawPrimary,
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			before := later()
			mark(s, here)
			n := needOf(s, here)
			if !n.Marked || !n.PrimaryOnly() || n.None() || n.MarkedAt <= before {
				t.Errorf("have %s at %d, want marked after %d", describe(n), n.MarkedAt, before)
			}
			wantNeed(t, s, there, Need{})
			// Under way already when the mark was set: may have missed it.
			s.Advance(here, at(1, 100), before, false)
			wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
			s.Advance(here, at(1, 100), needOf(s, here).MarkedAt, false)
			wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
			s.Advance(here, at(1, 120), later(), false)
			wantNeed(t, s, here, Need{Position: at(1, 120)})
			if e, _ := s.Token().Entry(here); e.Marked() || (e.Write == at(1, 120)) != (name == "wrote") {
				t.Errorf("entry: have %+v", e)
			}
		})
	}
}

func TestMarkOfOneClusterIsNotResolvedByAnother(t *testing.T) {
	s := New()
	s.MarkWrote(here)
	s.MarkWrote(there)
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	wantNeed(t, s, there, Need{Marked: true})
}

// A process that knows no cluster marks all of them; each resolves it for itself.
func TestMarkOfAnyCluster(t *testing.T) {
	s := New()
	s.Advance(here, at(1, 50), later(), true)
	s.MarkWrote(nowhere)
	wantNeed(t, s, here, Need{Position: at(1, 50), Marked: true})
	wantNeed(t, s, there, Need{Marked: true})
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	wantNeed(t, s, there, Need{Marked: true})
	s.MarkWrote(nowhere)
	wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
	// What has been resolved stays so for whoever continues the session.
	s.Advance(here, at(1, 120), later(), false)
	next := New(handed(t, s.Token()))
	wantNeed(t, next, here, Need{Position: at(1, 120)})
	wantNeed(t, next, there, Need{Marked: true})
}

// Marks of an entry that names more than this process knows.
func TestMarkOfANamedClusterSeenByAProcessWithoutName(t *testing.T) {
	named := token.Key{System: here.System, Name: 5}
	s := New(token.FromEntries(token.Entry{Key: named, Wrote: true, Write: at(1, 70)}))
	wantNeed(t, s, here, Need{Position: at(1, 70), Marked: true})
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	if e, _ := s.Token().Entry(named); !e.Wrote {
		t.Error("the mark is gone from the token: other processes have not resolved it")
	}
	s.MarkSawPrimary(there) // nothing that this cluster has to do with
	s.Advance(here, at(1, 110), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 110)})
}

func TestBareLSN(t *testing.T) {
	s := New(token.FromLSN(500))
	wantNeed(t, s, here, Need{Bare: 500})
	wantNeed(t, s, there, Need{Bare: 500})
	if n := needOf(s, here); n.None() || n.PrimaryOnly() || n.Want() != at(0, 500) {
		t.Errorf("have %s", describe(n))
	}
	s.Advance(here, at(3, 400), later(), true)
	wantNeed(t, s, here, Need{Position: at(3, 400), Bare: 500})
	if want := needOf(s, here).Want(); want != at(3, 500) {
		t.Errorf("want: have %s", want)
	}
}

func TestBareLSNBesideALaterTimelineOfTheSameEntry(t *testing.T) {
	s := New(
		token.FromEntries(token.Entry{Key: here, Write: at(0, 900)}),
		token.FromEntries(token.Entry{Key: here, Write: at(2, 100)}),
	)
	wantNeed(t, s, here, Need{Position: at(2, 100), Bare: 900})
}

func TestObserve(t *testing.T) {
	s := New()
	s.Observe(token.Token{})
	wantNeed(t, s, here, Need{})
	before := later()
	s.Observe(token.FromEntries(token.Entry{Key: here, SeenPrimary: true, Floor: at(1, 10)}))
	wantNeed(t, s, here, Need{Position: at(1, 10), Marked: true})
	// The mark counts from when it was received, not from when it was written.
	s.Advance(here, at(1, 20), before, false)
	wantNeed(t, s, here, Need{Position: at(1, 20), Marked: true})
	s.Advance(here, at(1, 30), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 30)})
}

// The same mark received again may be about a later write.
func TestObserveTheSameMarkAgain(t *testing.T) {
	tok := token.FromEntries(token.Entry{Key: here, Wrote: true})
	s := New(tok)
	begun := later()
	s.Observe(tok)
	s.Advance(here, at(1, 20), begun, false)
	wantNeed(t, s, here, Need{Position: at(1, 20), Marked: true})
}

// Every token that Parse accepts may come from outside.
func TestObserveSeveralEntriesOfSeenNodes(t *testing.T) {
	tok := token.FromEntries(
		token.Entry{Key: here, SeenNodes: []token.Incarnation{1, 2}},
		token.Entry{Key: there, SeenNodes: []token.Incarnation{3}},
		token.Entry{Key: token.Key{System: 33}, Write: at(1, 5), SeenNodes: []token.Incarnation{4}},
		token.Entry{Key: token.Key{System: 44}, Write: at(1, 6)},
	)
	s := New(handed(t, tok))
	wantNeed(t, s, here, Need{nreads: 2})
	wantNeed(t, s, there, Need{nreads: 1})
	wantNeed(t, s, token.Key{System: 33}, Need{Position: at(1, 5), nreads: 1})
	wantNeed(t, s, token.Key{System: 44}, Need{Position: at(1, 6)})
	// The times differ: seen nodes are written down when the token is.
	got := s.Token()
	for i := range tok.Len() {
		want := tok.At(i)
		have, _ := got.Entry(want.Key)
		have.Minted = want.Minted
		if !token.FromEntries(have).Equal(token.FromEntries(want)) {
			t.Errorf("token: have %+v, want %+v", have, want)
		}
	}
}

func TestOpenTransaction(t *testing.T) {
	s := New()
	s.BeginWrite()
	s.BeginWrite()
	s.EndWrite()
	wantNeed(t, s, here, Need{Open: true})
	if n := needOf(s, there); !n.PrimaryOnly() {
		t.Error("an open transaction does not keep reads on the primary")
	}
	s.EndWrite()
	wantNeed(t, s, here, Need{})
}

// The end of a transaction of the application's own can only be asked for.
func TestAwaitedWrite(t *testing.T) {
	s := New()
	done := false
	s.Await(here, func() bool { return done })
	wantNeed(t, s, here, Need{Marked: true, Open: true})
	wantNeed(t, s, there, Need{Open: true})
	// A position asked for before the end does not cover it, here or elsewhere.
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100), Open: true})
	wantNeed(t, New(handed(t, s.Token())), here, Need{Position: at(1, 100), Marked: true})
	begun := later()
	done = true
	wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
	s.Advance(here, at(1, 110), begun, false)
	wantNeed(t, s, here, Need{Position: at(1, 110), Marked: true})
	s.Advance(here, at(1, 120), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 120)})
	if e, _ := s.Token().Entry(here); e.Marked() || e.Write != at(1, 120) {
		t.Errorf("entry: have %+v", e)
	}
}

func TestAwaitedWritesEndOneByOne(t *testing.T) {
	s := New()
	var done [2]bool
	for i := range done {
		s.Await(here, func() bool { return done[i] })
	}
	done[1] = true
	wantNeed(t, s, here, Need{Marked: true, Open: true})
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100), Open: true})
	done[0] = true
	wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
}
