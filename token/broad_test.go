package token

import (
	"testing"
	"time"
)

var (
	full   = Key{System: 7, Name: 5}
	system = Key{System: 7}
	name   = Key{Name: 5}
)

// resolved is a token with a mark about any cluster, which the entry of k covers.
func resolved(k Key) Token { return resolvedFor(Key{}, k) }

func resolvedFor(broad, k Key) Token {
	return Token{}.Mark(broad, Marks{Wrote: true}, time.Time{}).
		Replace(Entry{Key: k, Write: at(1, 10), BroadCovered: true})
}

func wantPending(t *testing.T, tok Token, k Key, want bool) {
	t.Helper()
	if got := tok.BroadPending(k); got != want {
		t.Errorf("%v pending: have %v, want %v, in %s", k, got, want, describe(tok))
	}
}

func TestBroadMarksArePendingUntilResolved(t *testing.T) {
	marks := Marks{SeenNodes: []Incarnation{3}}
	for _, broad := range []Key{{}, system, name} {
		tok := FromEntries(Entry{Key: full, Write: at(1, 1)})
		wantPending(t, tok, full, false)
		tok = tok.Mark(broad, marks, time.Time{})
		wantPending(t, tok, full, true)
		tok = tok.Replace(Entry{Key: full, Write: at(1, 1), Floor: at(1, 2), BroadCovered: true})
		wantPending(t, tok, full, false)
		wantPending(t, tok, Key{System: 7, Name: 6}, broad != name)
		wantPending(t, tok, Key{System: 8, Name: 5}, broad != system)
	}
}

func TestMarksOfTheKeyItselfOrNarrowerAreNotBroad(t *testing.T) {
	tok := FromEntries(Entry{Key: full, Wrote: true}, Entry{Key: name, Wrote: true})
	for _, k := range []Key{{}, name, system} {
		wantPending(t, tok, k, false)
	}
	wantPending(t, tok, full, true)
}

func TestNewMarkIsPendingAgain(t *testing.T) {
	for label, tok := range map[string]Token{
		"marked":        resolved(full).Mark(system, Marks{SeenPrimary: true}, time.Time{}),
		"marked twice":  resolved(full).Mark(Key{}, Marks{Wrote: true}, time.Time{}),
		"replaced":      resolved(full).Replace(Entry{Key: Key{}, Wrote: true, SeenPrimary: true}),
		"merged":        resolved(full).Merge(FromEntries(Entry{Wrote: true})),
		"merged system": resolvedFor(system, full).Merge(FromEntries(Entry{Key: system, Wrote: true})),
		"merged name":   resolvedFor(name, full).Merge(FromEntries(Entry{Key: name, Wrote: true})),
		"merged beside": FromEntries(Entry{Wrote: true}, Entry{Key: full, Write: at(1, 10)}).Merge(resolved(full)),
		"listed twice":  FromEntries(append(resolved(full).Entries(), Entry{Key: full, Write: at(1, 1)})...),
		"listed before": FromEntries(append([]Entry{{Key: full, Write: at(1, 1)}}, resolved(full).Entries()...)...),
	} {
		t.Run(label, func(t *testing.T) { wantPending(t, tok, full, true) })
	}
}

func TestResolutionStays(t *testing.T) {
	for label, tok := range map[string]Token{
		"merged with no marks": resolved(full).Merge(FromEntries(Entry{Key: full, Write: at(1, 99)})),
		"merged with same":     resolved(full).Merge(resolved(full)),
		"raised":               resolved(full).With(Entry{Key: full, Floor: at(1, 11)}),
		"mark of another":      resolved(full).Mark(Key{System: 8}, Marks{Wrote: true}, time.Time{}),
		"mark of its own":      resolved(full).Mark(full, Marks{Wrote: true}, time.Time{}),
		"same mark replaced":   resolved(full).Replace(Entry{Write: at(0, 5), Wrote: true}),
	} {
		t.Run(label, func(t *testing.T) {
			wantPending(t, tok, full, false)
			if e, _ := tok.Entry(full); !e.BroadCovered {
				t.Errorf("not covered: %s", describe(tok))
			}
		})
	}
}

func TestCoveredOnlyWhereThereIsSomethingToCover(t *testing.T) {
	alone := Token{}.Replace(Entry{Key: full, Write: at(1, 1), BroadCovered: true})
	wantEntry(t, alone, Entry{Key: full, Write: at(1, 1)})
	cleared := resolved(full).Replace(Entry{})
	wantEntry(t, cleared, Entry{Key: full, Write: at(1, 10)})
	wantPending(t, cleared.Mark(Key{}, Marks{Wrote: true}, time.Time{}), full, true)
}

func TestWithCannotClaimToCover(t *testing.T) {
	tok := FromEntries(Entry{Wrote: true}, Entry{Key: full, Write: at(1, 1)})
	wantPending(t, tok.With(Entry{Key: full, Write: at(1, 9), BroadCovered: true}), full, true)
}

// What crowding turns into a mark was a position that nobody has covered.
func TestCrowdingOfABroadEntryIsPending(t *testing.T) {
	tok := resolved(full).
		With(Entry{Write: at(3, 1)}).
		With(Entry{Write: at(0, 500)})
	wantPending(t, tok, full, false)
	for i := range 6 {
		tok = tok.With(Entry{Key: Key{System: uint64(50 + i)}, Write: at(1, 1)})
	}
	if e, _ := tok.Entry(Key{}); !e.Former.IsZero() || !e.Wrote {
		t.Fatalf("not crowded: %s", describe(tok))
	}
	wantPending(t, tok, full, true)

	// Nor may a crowded token that has resolved the mark take another such
	// position for one it covers.
	e, _ := tok.Entry(full)
	e.BroadCovered = true
	tok = tok.Replace(e)
	wantPending(t, tok, full, false)
	wantPending(t, tok.With(Entry{Write: at(0, 600)}), full, true)
}

// Merging takes the larger status of both sides for every key, listed or not.
func TestMergeTakesLargerStatus(t *testing.T) {
	keys := generator{}.keys()
	properties(t, func(t *testing.T, g generator) {
		a, b := g.token(), g.token()
		m := a.Merge(b)
		for _, k := range keys {
			want := max(statusOf(a.entries, k), statusOf(b.entries, k))
			have := statusOf(m.entries, k)
			switch {
			case m.OthersConstrain(k):
			case have < want, have > want && m.Len() <= roomy:
				t.Errorf("%v: have %d, want %d\na: %s\nb: %s\nmerged: %s", k, have, want, describe(a), describe(b), describe(m))
				return
			}
		}
	})
}
