package session

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// The needs of several sessions on one query add up.
func TestNeedsMerge(t *testing.T) {
	a, b := New(), New()
	a.Advance(here, at(1, 100), later(), true)
	b.Advance(here, at(1, 50), later(), true)
	a.ReadNode(here, 7, later())
	b.ReadNode(here, 7, later())
	b.ReadNode(here, 8, later())
	b.BeginWrite()
	b.Observe(token.FromLSN(9))
	both := func(first, second *Session) *Need {
		n := &Need{}
		first.Need(n, here, time.Time{})
		second.Need(n, here, time.Time{})
		return n
	}
	for name, n := range map[string]*Need{"a, b": both(a, b), "b, a": both(b, a)} {
		if n.Position != at(1, 100) || n.Bare != 9 || !n.Open || n.Marked || len(n.Reads()) != 2 {
			t.Errorf("%s: have %s", name, describe(n))
		}
	}
	for name, n := range map[string]*Need{"a, b": both(a, b), "b, a": both(b, a)} {
		for _, r := range n.Reads() {
			if r.Node == 7 && r.At != needOf(b, here).Reads()[0].At {
				t.Errorf("%s: node 7: not the newest read of both", name)
			}
		}
	}
	a.MarkWrote(here)
	b.MarkWrote(here)
	for name, n := range map[string]*Need{"a, b": both(a, b), "b, a": both(b, a)} {
		if !n.Marked || n.MarkedAt < needOf(b, here).MarkedAt || n.MarkedAt < needOf(a, here).MarkedAt {
			t.Errorf("%s: have %s at %d, want the newest mark", name, describe(n), n.MarkedAt)
		}
	}
}

func TestNeedOfTooManyReadsTogether(t *testing.T) {
	a, b := New(), New()
	for i := range MaxReads {
		a.ReadNode(here, token.Incarnation(i+1), later())
	}
	last := later()
	b.ReadNode(here, 100, last)
	n := &Need{}
	a.Need(n, here, time.Time{})
	b.Need(n, here, time.Time{})
	if !n.Marked || n.MarkedAt < last || len(n.Reads()) != MaxReads {
		t.Errorf("have %s at %d, want marked at %d", describe(n), n.MarkedAt, last)
	}
}

func TestAgedToken(t *testing.T) {
	minted := time.Now().Add(-time.Hour)
	s := New(token.FromEntries(token.Entry{Key: here, Write: at(1, 100), Minted: minted}))
	for oldest, want := range map[time.Time]bool{minted.Add(-time.Minute): false, minted.Add(time.Minute): true, {}: false} {
		n := &Need{}
		s.Need(n, here, oldest)
		if n.Aged != want || n.PrimaryOnly() != want || n.Position != at(1, 100) {
			t.Errorf("oldest %s: have %s, want aged %v", oldest, describe(n), want)
		}
	}
	undated := New(token.FromEntries(token.Entry{Key: here, Write: at(1, 100)}))
	n := &Need{}
	if undated.Need(n, here, time.Now()); n.Aged {
		t.Error("a token without date is aged")
	}
}

// The read that an aged token sends to the primary replaces what it held.
func TestRenewReplacesWhatIsAged(t *testing.T) {
	old := token.Entry{Key: here, Write: at(9, 100), Floor: at(9, 90), Minted: time.Now().Add(-time.Hour)}
	s := New(token.FromEntries(old, token.Entry{Key: there, Write: at(1, 7), Minted: old.Minted}))
	s.Renew(here, at(1, 50), later())
	n := &Need{}
	s.Need(n, here, time.Now().Add(-time.Minute))
	if n.Aged || n.Position != at(1, 50) {
		t.Errorf("have %s, want 1:0/32, fresh", describe(n))
	}
	wantNeed(t, s, there, Need{Position: at(1, 7)})
}

func TestRenewOfAnEntryThatNamesMore(t *testing.T) {
	minted := time.Now().Add(-time.Hour)
	s := New(token.FromEntries(token.Entry{Key: nowhere, Write: at(0, 100), Minted: minted}))
	n := &Need{}
	if s.Need(n, here, time.Now()); !n.Aged {
		t.Fatal("not aged")
	}
	s.Renew(here, at(1, 50), later())
	n = &Need{}
	if s.Need(n, here, time.Now().Add(-time.Minute)); n.Aged || n.Position != at(1, 50) || n.Bare != 100 {
		t.Errorf("have %s, want covered since", describe(n))
	}
}

// What came while the renewing query was under way must not be replaced by it.
func TestRenewKeepsWhatIsNewer(t *testing.T) {
	aged := token.FromEntries(token.Entry{Key: here, Write: at(1, 10), Minted: time.Now().Add(-time.Hour)})
	for name, tc := range map[string]struct {
		meanwhile func(*Session)
		want      Need
	}{
		"write captured": {
			func(s *Session) { s.Advance(here, at(1, 80), later(), true) },
			Need{Position: at(1, 80)},
		},
		"read settled": {
			func(s *Session) {
				s.ReadNode(here, 7, later())
				s.SettleRead(here, 7, at(1, 80), later())
			},
			Need{Position: at(1, 80)},
		},
		"token received": {
			func(s *Session) { s.Observe(token.FromEntries(token.Entry{Key: here, Write: at(1, 80)})) },
			Need{Position: at(1, 80)},
		},
		"write marked": {
			func(s *Session) { s.MarkWrote(here) },
			Need{Position: at(1, 50), Marked: true},
		},
		"read": {
			func(s *Session) { s.ReadNode(here, 7, later()) },
			Need{Position: at(1, 50), nreads: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(aged)
			begun := later()
			tc.meanwhile(s)
			s.Renew(here, at(1, 50), begun)
			wantNeed(t, s, here, tc.want)
		})
	}
}

// full returns a token without room for key 99.
func full() token.Token {
	var entries []token.Entry
	for i := range token.MaxEntries {
		entries = append(entries, token.Entry{Key: token.Key{System: uint64(i + 1)}, Write: at(1, 5)})
	}
	return token.FromEntries(entries...)
}

func TestOverflowsMerge(t *testing.T) {
	last := token.Key{System: 99}
	full, empty := New(full(), token.FromEntries(token.Entry{Key: last, Wrote: true})), New()
	for _, order := range [][]*Session{{full, empty}, {empty, full}} {
		n := &Need{}
		for _, s := range order {
			s.Need(n, last, time.Time{})
		}
		if !n.Elsewhere || !n.PrimaryOnly() {
			t.Errorf("have %s, want the primary", describe(n))
		}
	}
}

// A session of more clusters than a token lists must not forget what it wrote in
// one that has no room.
func TestWriteInAClusterThatHasNoRoom(t *testing.T) {
	last := token.Key{System: 99}
	s := New(full())
	s.Advance(last, at(1, 100), later(), true)
	if n := needOf(s, last); !n.Elsewhere || !n.PrimaryOnly() {
		t.Errorf("have %s, want the primary", describe(n))
	}
	wantNeed(t, s, token.Key{System: 1}, Need{Position: at(1, 5)})
}

func TestMarkThatTakesTheRoom(t *testing.T) {
	last := token.Key{System: 99}
	s := New(full())
	s.MarkWrote(nowhere) // takes the room of the 16th, too
	s.Advance(last, at(1, 100), later(), true)
	if n := needOf(s, last); !n.Elsewhere || !n.PrimaryOnly() {
		t.Errorf("have %s, want the primary", describe(n))
	}
	wantNeed(t, s, token.Key{System: 1}, Need{Position: at(1, 5), Marked: true})
	s.Advance(token.Key{System: 1}, at(1, 6), later(), false)
	wantNeed(t, s, token.Key{System: 1}, Need{Position: at(1, 6)})
}

func TestClusterThatLosesItsRoom(t *testing.T) {
	last := token.Key{System: 99}
	for name, crowd := range map[string]func(*Session){
		"observed": func(s *Session) { s.Observe(full()) },
		"advanced": func(s *Session) {
			for i := range token.MaxEntries {
				s.Advance(token.Key{System: uint64(i + 1)}, at(1, 5), later(), true)
			}
		},
		"settled": func(s *Session) {
			for i := range token.MaxEntries {
				k := token.Key{System: uint64(i + 1)}
				s.ReadNode(k, 7, later())
				s.SettleRead(k, 7, at(1, 5), later())
			}
		},
	} {
		s := New()
		s.Advance(last, at(1, 100), later(), true)
		if crowd(s); !needOf(s, last).PrimaryOnly() {
			t.Errorf("%s: have %s, want the primary: the write's position is gone", name, describe(needOf(s, last)))
		}
	}
}

// What an overflowing token dropped is resolved by the primary's position, for a
// cluster that is listed.
func TestReceivedOverflowIsNotCoveredByWhatWasBefore(t *testing.T) {
	var entries []token.Entry
	for i := range token.MaxEntries + 1 {
		entries = append(entries, token.Entry{Key: token.Key{System: 5, Name: uint64(i)}, Write: at(1, 5)})
	}
	key := token.Key{System: 5}
	s := New()
	s.Advance(key, at(1, 10), later(), true)
	s.Observe(token.FromEntries(entries...))
	wantNeed(t, s, key, Need{Position: at(1, 10), Elsewhere: true})
	s.Advance(key, at(1, 20), later(), false)
	wantNeed(t, s, key, Need{Position: at(1, 20)})
}

func TestNeedDoesNotAllocate(t *testing.T) {
	s := New(token.FromLSN(7))
	s.Advance(here, at(1, 100), later(), true)
	s.Advance(there, at(1, 100), later(), true)
	s.MarkWrote(nowhere)
	for i := range MaxReads {
		s.ReadNode(here, token.Incarnation(i+1), later())
	}
	var n Need
	oldest := time.Now()
	if allocs := testing.AllocsPerRun(200, func() {
		n = Need{}
		s.Need(&n, here, oldest)
		_ = n.Reads()
		_ = n.None()
	}); allocs != 0 {
		t.Errorf("have %v allocations, want 0", allocs)
	}
}

func BenchmarkNeed(b *testing.B) {
	s := New()
	s.Advance(here, at(1, 100), later(), true)
	oldest := time.Now()
	for b.Loop() {
		var n Need
		s.Need(&n, here, oldest)
	}
}
