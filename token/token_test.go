package token

import (
	"testing"
	"time"
)

func TestAccessors(t *testing.T) {
	tok := FromEntries(Entry{Key: full, Write: at(1, 2)}, Entry{Key: system, Floor: at(1, 1)})
	if tok.IsZero() || tok.Len() != 2 || tok.At(0).Key != system || tok.At(1).Key != full {
		t.Fatalf("have %s", describe(tok))
	}
	if e, ok := tok.Entry(full); !ok || e.Write != at(1, 2) {
		t.Errorf("entry %s, %v", describeEntry(e), ok)
	}
	if e, ok := tok.Entry(name); ok || !same(e, Entry{}) {
		t.Errorf("a key that is not there has %s", describeEntry(e))
	}
	if m := FromEntries(Entry{Wrote: true, SeenNodes: []Incarnation{3}}).At(0).Marks(); !m.Wrote || m.SeenPrimary || len(m.SeenNodes) != 1 {
		t.Errorf("marks %+v", m)
	}
}

func TestEqual(t *testing.T) {
	base := Entry{
		Key: full, Write: at(3, 2), Former: at(1, 1), Floor: at(3, 1),
		Minted: time.UnixMilli(9), SeenNodes: []Incarnation{1},
	}
	tok := FromEntries(base)
	wantEqual(t, FromEntries(base, base), tok)
	for i, change := range []func(*Entry){
		func(e *Entry) { e.Key.Name++ },
		func(e *Entry) { e.Write.LSN++ },
		func(e *Entry) { e.Floor.LSN++ },
		func(e *Entry) { e.Former.LSN++ },
		func(e *Entry) { e.Minted = e.Minted.Add(time.Millisecond) },
		func(e *Entry) { e.Wrote = true },
		func(e *Entry) { e.SeenPrimary = true },
		func(e *Entry) { e.SeenNodes = []Incarnation{2} },
	} {
		e := base
		change(&e)
		other := FromEntries(e)
		if other.Equal(tok) || tok.Equal(other) || other.String() == tok.String() {
			t.Errorf("change %d makes no difference", i)
		}
	}
	if pending := FromEntries(Entry{Wrote: true}, Entry{Key: full, Write: at(1, 10)}); pending.Equal(resolved(full)) {
		t.Error("BroadCovered makes no difference")
	}
}

func TestReplace(t *testing.T) {
	tok := FromEntries(
		Entry{Key: system, Write: at(2, 9), Former: at(1, 9), Wrote: true},
		Entry{Key: full, Write: at(2, 1)},
	)
	lower := Entry{Key: system, Write: at(2, 3)}
	got := tok.Replace(lower)
	wantEqual(t, got, FromEntries(lower, Entry{Key: full, Write: at(2, 1)}))
	wantEqual(t, got.Replace(lower), got)
	wantEqual(t, got.Replace(Entry{Key: system}), FromEntries(Entry{Key: full, Write: at(2, 1)}))
	wantEqual(t, got.Replace(Entry{Key: name}), got)
	wantEqual(t, got.Replace(Entry{Key: name, Wrote: true}), got.Mark(name, Marks{Wrote: true}, time.Time{}))
	if !FromEntries(lower).Replace(Entry{Key: system}).Equal(Token{}) {
		t.Error("the last entry stays")
	}
}

// A key that is not listed counts as dropped, so removing one must not unlist it.
func TestReplaceWhereEntriesWereDropped(t *testing.T) {
	list := make([]Entry, 17)
	for i := range list {
		list[i] = Entry{Key: Key{System: uint64(1 + i)}, Write: at(1, 1)}
	}
	tok := FromEntries(list...)
	for i := range 16 {
		tok = tok.Replace(Entry{Key: Key{System: uint64(1 + i)}, Minted: time.UnixMilli(4)})
	}
	if tok.IsZero() || tok.Len() != 16 || !tok.Others() || tok.At(15).Key.System != 16 {
		t.Fatalf("have %s", describe(tok))
	}
	if tok.OthersConstrain(Key{System: 15}) || !tok.OthersConstrain(Key{System: 17}) {
		t.Error("the removed key counts as dropped, or the dropped one does not")
	}
	roundTrip(t, tok)
	again := tok.With(list[3])
	if e, _ := again.Entry(list[3].Key); e.Write != at(1, 1) || again.Len() != 16 {
		t.Errorf("have %s", describe(again))
	}
	wantEqual(t, tok.Replace(Entry{Key: Key{System: 99}}), tok)
}

func TestMark(t *testing.T) {
	tok := FromEntries(Entry{Key: full, Write: at(1, 2), Minted: time.UnixMilli(5)})
	wantEqual(t, tok.Mark(system, Marks{}, time.UnixMilli(9)), tok)
	wantEntry(t, tok.Mark(full, Marks{Wrote: true, SeenNodes: []Incarnation{0}}, time.UnixMilli(9)),
		Entry{Key: full, Write: at(1, 2), Minted: time.UnixMilli(9), Wrote: true, SeenPrimary: true})
}

// What every read and every response does must not allocate.
func TestAllocations(t *testing.T) {
	e := Entry{Key: full, Write: at(2, 0x3000060), Floor: at(2, 0x3000100), Minted: time.UnixMilli(1 << 40)}
	tok := FromEntries(e, Entry{Key: system, Wrote: true, SeenNodes: []Incarnation{1, 2}}).
		Replace(Entry{Key: full, Write: e.Write, Floor: e.Floor, BroadCovered: true})
	below := FromEntries(Entry{Key: full, Write: at(2, 1)}, Entry{Key: system, SeenNodes: []Incarnation{2}}).
		Replace(Entry{Key: full, Write: at(2, 1), BroadCovered: true})
	var sink Token
	var lsn LSN
	for name, f := range map[string]func(){
		"At": func() {
			for i := range tok.Len() {
				lsn += tok.At(i).Write.LSN
			}
		},
		"Entry":           func() { found, _ := tok.Entry(full); lsn += found.Floor.LSN },
		"BroadPending":    func() { sink.others = tok.BroadPending(full) || tok.OthersConstrain(full) },
		"Merge empty":     func() { sink = tok.Merge(Token{}) },
		"Merge to empty":  func() { sink = Token{}.Merge(tok) },
		"Merge same":      func() { sink = tok.Merge(tok) },
		"Merge smaller":   func() { sink = tok.Merge(below) },
		"Merge larger":    func() { sink = below.Merge(tok) },
		"With nothing":    func() { sink = tok.With(Entry{Key: full}) },
		"With smaller":    func() { sink = tok.With(Entry{Key: full, Floor: at(2, 5)}) },
		"Replace by same": func() { sink = tok.Replace(tok.At(1)) },
		"Equal":           func() { sink.others = tok.Equal(below) },
	} {
		t.Run(name, func(t *testing.T) {
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
	_, _ = sink, lsn
}

// Whenever the result is one of the two, merging allocates nothing.
func TestMergeAllocatesOnlyForNewTokens(t *testing.T) {
	properties(t, func(t *testing.T, g generator) {
		a, b := g.token(), g.token()
		m := a.Merge(b)
		for _, pair := range [][2]Token{{m, a}, {b, m}, {a, a}} {
			if n := testing.AllocsPerRun(1, func() { pair[0].Merge(pair[1]) }); n != 0 {
				t.Errorf("%v allocations\na: %s\nb: %s", n, describe(pair[0]), describe(pair[1]))
			}
		}
	})
}
