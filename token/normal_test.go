package token

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestFromLSN(t *testing.T) {
	wantEntry(t, FromLSN(0x3000060), Entry{Write: at(0, 0x3000060)})
	if !FromLSN(0).IsZero() {
		t.Error("LSN 0 asks for something")
	}
	wantEntry(t, FromLSN(math.MaxUint64), Entry{Wrote: true})
}

func TestNormalPositions(t *testing.T) {
	for name, c := range map[string]struct{ in, want Entry }{
		"former above write": {
			Entry{Write: at(1, 5), Former: at(2, 3)},
			Entry{Write: at(2, 3), Former: at(1, 5)},
		},
		"former on write's timeline": {
			Entry{Write: at(2, 3), Former: at(2, 9)},
			Entry{Write: at(2, 9)},
		},
		"former alone":    {Entry{Former: at(2, 9)}, Entry{Write: at(2, 9)}},
		"no LSN":          {Entry{Write: at(2, 9), Floor: at(3, 0), Former: at(1, 0)}, Entry{Write: at(2, 9)}},
		"bare floor":      {Entry{Floor: at(0, 4)}, Entry{Write: at(0, 4)}},
		"bare floor too":  {Entry{Write: at(2, 1), Floor: at(0, 4)}, Entry{Write: at(2, 1), Former: at(0, 4)}},
		"highest LSN":     {Entry{Write: at(1, maxLSN)}, Entry{Write: at(1, maxLSN)}},
		"wide write":      {Entry{Write: at(1, maxLSN+1)}, Entry{Wrote: true}},
		"wide former":     {Entry{Write: at(1, 5), Former: at(1, maxLSN+1)}, Entry{Write: at(1, 5), Wrote: true}},
		"wide floor":      {Entry{Write: at(1, 5), Floor: at(maxTimeline+1, 1)}, Entry{Write: at(1, 5), SeenPrimary: true}},
		"covered by none": {Entry{Wrote: true, BroadCovered: true}, Entry{Wrote: true}},
	} {
		t.Run(name, func(t *testing.T) { wantEntry(t, FromEntries(c.in), c.want) })
	}
}

func TestNormalMarks(t *testing.T) {
	nine := []Incarnation{9, 8, 7, 6, 5, 4, 3, 2, 1}
	for name, c := range map[string]struct{ in, want Entry }{
		"sorted set":   {Entry{SeenNodes: []Incarnation{5, 2, 5}}, Entry{SeenNodes: []Incarnation{2, 5}}},
		"full":         {Entry{SeenNodes: nine[:8]}, Entry{SeenNodes: []Incarnation{2, 3, 4, 5, 6, 7, 8, 9}}},
		"overflow":     {Entry{SeenNodes: nine}, Entry{SeenPrimary: true}},
		"unknown life": {Entry{SeenNodes: []Incarnation{0, 1}}, Entry{SeenPrimary: true}},
		"absorbed":     {Entry{SeenPrimary: true, SeenNodes: nine[:2]}, Entry{SeenPrimary: true}},
	} {
		t.Run(name, func(t *testing.T) { wantEntry(t, FromEntries(c.in), c.want) })
	}
}

func TestNormalMinted(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for name, c := range map[string]struct{ in, want time.Time }{
		"unknown":    {time.Time{}, time.Time{}},
		"before":     {time.Unix(0, 0), time.Time{}},
		"first":      {time.UnixMilli(1), time.UnixMilli(1)},
		"cut":        {time.Unix(5, 1_999_999).In(zone), time.UnixMilli(5001)},
		"last":       {time.UnixMilli(maxMinted), time.UnixMilli(maxMinted)},
		"after last": {time.Unix(math.MaxInt64/2, 0), time.UnixMilli(maxMinted)},
	} {
		t.Run(name, func(t *testing.T) {
			got := FromEntries(Entry{Wrote: true, Minted: c.in}).At(0).Minted
			if !got.Equal(c.want) || got.Location() != time.UTC {
				t.Errorf("have %v, want %v in UTC", got, c.want)
			}
		})
	}
}

func TestEntriesThatAskForNothing(t *testing.T) {
	got := FromEntries(Entry{}, Entry{Key: Key{1, 2}, Minted: time.UnixMilli(5), BroadCovered: true, Floor: at(4, 0)})
	if !got.IsZero() || got.Len() != 0 || got.String() != "" || got.Entries() != nil {
		t.Errorf("have %s", describe(got))
	}
}

// A caller may go on using what it passed in and what it got out.
func TestTokensShareNothing(t *testing.T) {
	nodes := []Incarnation{1, 2}
	e := Entry{Write: at(1, 1), SeenNodes: nodes}
	tokens := []Token{FromEntries(e), Token{}.With(e), Token{}.Replace(e), Token{}.Mark(Key{}, e.Marks(), time.Time{})}
	nodes[0] = 77
	for _, tok := range tokens {
		out := tok.Entries()
		out[0].SeenNodes[1], out[0].Write = 78, at(9, 9)
		if kept := tok.At(0); !slices.Equal(kept.SeenNodes, []Incarnation{1, 2}) || kept.Write.Timeline == 9 {
			t.Errorf("token changed: %s", describe(tok))
		}
	}
}

func TestNormalIsStable(t *testing.T) {
	properties(t, func(t *testing.T, g generator) {
		e := normal(g.entry(3))
		if again := normal(e); !same(again, e) {
			t.Errorf("%s\nagain %s", describeEntry(e), describeEntry(again))
		}
		tok := g.token()
		if tok.Others() {
			return
		}
		wantEqual(t, FromEntries(tok.Entries()...), tok)
	})
}
