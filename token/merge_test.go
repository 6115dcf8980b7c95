package token

import (
	"slices"
	"testing"
	"time"
)

func TestMergeOneCluster(t *testing.T) {
	k := Key{System: 7}
	for name, c := range map[string]struct{ a, b, want Entry }{
		"larger position of each kind": {
			Entry{Write: at(1, 9), Floor: at(1, 3)},
			Entry{Write: at(1, 4), Floor: at(1, 8)},
			Entry{Write: at(1, 9), Floor: at(1, 8)},
		},
		"later timeline though lower LSN": {
			Entry{Write: at(1, 9)},
			Entry{Write: at(2, 4)},
			Entry{Write: at(2, 4), Former: at(1, 9)},
		},
		"two older timelines": {
			Entry{Write: at(3, 4), Former: at(1, 9)},
			Entry{Write: at(2, 5)},
			Entry{Write: at(3, 4), Former: at(1, maxLSN)},
		},
		"highest of one older timeline": {
			Entry{Write: at(3, 4), Former: at(2, 9)},
			Entry{Write: at(2, 5)},
			Entry{Write: at(3, 4), Former: at(2, 9)},
		},
		"a floor is no write": {
			Entry{Write: at(1, 9)},
			Entry{Floor: at(2, 4)},
			Entry{Write: at(1, 9), Floor: at(2, 4)},
		},
		"bare before timeline": {
			Entry{Write: at(0, 9)},
			Entry{Write: at(5, 4), Former: at(4, 8)},
			Entry{Write: at(5, 4), Former: at(0, 9)},
		},
		"marks add up": {
			Entry{Wrote: true, SeenNodes: []Incarnation{1, 3}},
			Entry{SeenNodes: []Incarnation{2, 3}},
			Entry{Wrote: true, SeenNodes: []Incarnation{1, 2, 3}},
		},
		"primary includes nodes": {
			Entry{SeenPrimary: true},
			Entry{SeenNodes: []Incarnation{2, 3}},
			Entry{SeenPrimary: true},
		},
		"too many nodes": {
			Entry{SeenNodes: []Incarnation{1, 2, 3, 4, 5}},
			Entry{SeenNodes: []Incarnation{5, 6, 7, 8, 9}},
			Entry{SeenPrimary: true},
		},
		"later time": {
			Entry{Wrote: true, Minted: time.UnixMilli(5)},
			Entry{Wrote: true, Minted: time.UnixMilli(7)},
			Entry{Wrote: true, Minted: time.UnixMilli(7)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Key, c.b.Key, c.want.Key = k, k, k
			a, b := FromEntries(c.a), FromEntries(c.b)
			wantEntry(t, a.Merge(b), c.want)
			wantEntry(t, b.Merge(a), c.want)
			wantEntry(t, a.With(c.b), c.want)
		})
	}
}

func TestMergeKeepsKeysApart(t *testing.T) {
	keys := []Key{{}, {0, 5}, {7, 0}, {7, 5}, {8, 0}}
	var tok Token
	for i := range keys {
		k := keys[len(keys)-1-i]
		tok = tok.Merge(FromEntries(Entry{Key: k, Write: at(1, LSN(k.System+1))}))
	}
	if tok.Len() != len(keys) || tok.Others() {
		t.Fatalf("have %s", describe(tok))
	}
	for i, k := range keys {
		if e := tok.At(i); e.Key != k || e.Write != at(1, LSN(k.System+1)) {
			t.Errorf("entry %d is %s, want key %v", i, describeEntry(e), k)
		}
	}
}

func TestMergeLaws(t *testing.T) {
	properties(t, func(t *testing.T, g generator) {
		checkLaws(t, g.token(), g.token(), g.token())
	})
}

// checkLaws checks that Merge is a join on three tokens.
func checkLaws(t *testing.T, a, b, c Token) {
	t.Helper()
	ab := a.Merge(b)
	wantEqual(t, b.Merge(a), ab)
	wantEqual(t, ab.Merge(c), a.Merge(b.Merge(c)))
	wantEqual(t, a.Merge(a), a)
	wantEqual(t, ab.Merge(a), ab)
	wantEqual(t, ab.Merge(b), ab)
	wantEqual(t, a.Merge(Token{}), a)
	wantEqual(t, Token{}.Merge(a), a)
	if t.Failed() {
		t.Logf("a: %s\nb: %s\nc: %s", describe(a), describe(b), describe(c))
	}
}

func TestMergeLosesNoConstraint(t *testing.T) {
	keys := generator{}.keys()
	properties(t, func(t *testing.T, g generator) {
		a, b := g.token(), g.token()
		m := a.Merge(b)
		for range 6 {
			k := keys[g.IntN(len(keys))]
			if lost := lostFor(k, a, m); lost != "" {
				t.Errorf("%v lost %s\na: %s\nb: %s\nmerged: %s", k, lost, describe(a), describe(b), describe(m))
			}
		}
	})
}

// lostFor names what a asks of the cluster and m does not.
func lostFor(cluster Key, a, m Token) string {
	switch {
	case m.OthersConstrain(cluster):
		return "" // only the primary will do: nothing can be lost
	case a.OthersConstrain(cluster):
		return "others"
	case a.BroadPending(cluster) && !m.BroadPending(cluster):
		return "pending marks"
	}
	for _, e := range a.Entries() {
		if !e.Key.Constrains(cluster) {
			continue
		}
		kept, _ := m.Entry(e.Key)
		switch {
		case kept.Write.Compare(e.Write) < 0:
			return "write of " + describeEntry(e)
		case kept.Floor.Compare(e.Floor) < 0:
			return "floor of " + describeEntry(e)
		case !kept.includesMarks(&e):
			return "marks of " + describeEntry(e)
		case !keepsFormer(cluster, kept, e, m):
			return "former of " + describeEntry(e)
		}
	}
	return ""
}

// keepsFormer reports whether everything that e's write positions ask for, but
// for Write itself, is still asked for.
func keepsFormer(cluster Key, kept, e Entry, m Token) bool {
	bare := e.Former
	if e.Write.IsBare() {
		bare = e.Write
	}
	resolvedTooEarly := e.Key.broaderThan(cluster) && !m.BroadPending(cluster)
	switch {
	case bare.IsBare() && kept.Write.IsBare():
		return kept.Write.LSN >= bare.LSN
	case bare.IsBare() && kept.Former.IsBare():
		return kept.Former.LSN >= bare.LSN
	case bare.IsBare():
		return kept.Wrote && !resolvedTooEarly
	default:
		return kept.Wrote || kept.Former.IsBare() || kept.Former.Compare(e.Former) >= 0 ||
			kept.Former.Timeline < e.Former.Timeline && kept.Former.LSN == maxLSN
	}
}

func TestCapKeepsSmallestKeys(t *testing.T) {
	list := make([]Entry, 20)
	for i := range list {
		list[i] = Entry{Key: Key{System: uint64(20 - i)}, Write: at(1, 1)}
	}
	if full := FromEntries(list[4:]...); full.Len() != 16 || full.Others() {
		t.Fatalf("16 entries: %s, others %v", describe(full), full.Others())
	}
	tok := FromEntries(list[:3]...).Merge(FromEntries(list[3:]...))
	if tok.Len() != 16 || !tok.Others() || tok.At(15).Key.System != 16 {
		t.Fatalf("have %s, others %v", describe(tok), tok.Others())
	}
	if small := FromEntries(Entry{Key: Key{System: 1}, Write: at(1, 1)}); !small.Merge(tok).Others() {
		t.Error("others is not sticky")
	}
	wantEqual(t, tok.With(Entry{Key: Key{System: 17}, Write: at(9, 9)}), tok)
}

func TestOthersConstrain(t *testing.T) {
	list := make([]Entry, 17)
	for i := range list {
		list[i] = Entry{Key: Key{System: uint64(10 + 2*i), Name: 5}, Wrote: true}
	}
	full, over := FromEntries(list[:16]...), FromEntries(list...) // up to {40 5}; {42 5} is dropped
	wantEqual(t, full.Merge(over), over)
	wantEqual(t, over.Merge(full), over)
	for cluster, want := range map[Key]bool{
		{10, 5}: false, // listed
		{11, 5}: false, // would be listed
		{40, 4}: false,
		{40, 5}: false,
		{40, 6}: true,
		{42, 5}: true,
		{41, 5}: true,
		{41, 0}: true,
		{40, 0}: true, // may be {40 6}
		{39, 0}: false,
		{0, 1}:  true, // may be {99 1}
		{0, 0}:  true,
	} {
		if full.OthersConstrain(cluster) {
			t.Errorf("nothing was dropped but %v is constrained", cluster)
		}
		if got := over.OthersConstrain(cluster); got != want {
			t.Errorf("%v: have %v, want %v", cluster, got, want)
		}
	}
}

// A token of many entries has no room for what is rare.
func TestCrowdedToken(t *testing.T) {
	list := make([]Entry, 7)
	for i := range list {
		list[i] = Entry{Key: Key{System: uint64(i)}, Write: at(2, 1), Former: at(1, 1), SeenNodes: []Incarnation{4}}
	}
	six := FromEntries(list[:6]...)
	if e := six.At(0); e.Former != at(1, 1) || !slices.Equal(e.SeenNodes, []Incarnation{4}) {
		t.Errorf("of six entries: %s", describeEntry(e))
	}
	for _, e := range six.With(list[6]).Entries() {
		if want := (Entry{Key: e.Key, Write: at(2, 1), Wrote: true, SeenPrimary: true}); !same(e, want) {
			t.Errorf("of seven entries: %s, want %s", describeEntry(e), describeEntry(want))
		}
	}
}
