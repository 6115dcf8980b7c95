package token

import (
	"maps"
	"slices"
	"testing"
)

// modelOf says what the token of a list of entries in normal form must be,
// computed from the whole list at once and straight from the definitions. It
// knows nothing of BroadCovered.
func modelOf(list []Entry) Token {
	byKey := map[Key][]Entry{}
	for _, e := range list {
		if e.hasPosition() || e.Marked() {
			byKey[e.Key] = append(byKey[e.Key], e)
		}
	}
	keys := slices.SortedFunc(maps.Keys(byKey), Key.Compare)
	if len(keys) == 0 {
		return Token{}
	}
	tok := Token{others: len(keys) > 16}
	keys = keys[:min(len(keys), 16)]
	for _, k := range keys {
		tok.entries = append(tok.entries, modelEntry(byKey[k], len(keys) > 6))
	}
	return tok
}

func modelEntry(same []Entry, crowded bool) Entry {
	m := Entry{Key: same[0].Key}
	var written []Position
	nodes := map[Incarnation]bool{}
	for _, e := range same {
		written = append(written, e.Write, e.Former)
		m.Floor = m.Floor.Max(e.Floor)
		m.Wrote = m.Wrote || e.Wrote
		m.SeenPrimary = m.SeenPrimary || e.SeenPrimary
		if e.Minted.After(m.Minted) {
			m.Minted = e.Minted
		}
		for _, n := range e.SeenNodes {
			nodes[n] = true
		}
	}
	m.Write = slices.MaxFunc(written, Position.Compare)
	m.Former = modelFormer(written, m.Write.Timeline)
	if crowded && !m.Former.IsZero() {
		m.Former, m.Wrote = Position{}, true
	}
	if len(nodes) > 8 || crowded && len(nodes) > 0 {
		m.SeenPrimary = true
	}
	if !m.SeenPrimary {
		m.SeenNodes = slices.Sorted(maps.Keys(nodes))
	}
	return m
}

// modelFormer is the highest bare position on an older timeline, or else the
// highest position there; of several such timelines, the last one of the oldest.
func modelFormer(written []Position, timeline uint32) Position {
	var bare Position
	older := map[uint32]Position{}
	for _, p := range written {
		switch {
		case p.Timeline >= timeline || p.IsZero():
		case p.IsBare():
			bare = bare.Max(p)
		default:
			older[p.Timeline] = older[p.Timeline].Max(p)
		}
	}
	oldest := slices.Sorted(maps.Keys(older))
	switch {
	case !bare.IsZero() || len(oldest) == 0:
		return bare
	case len(oldest) == 1:
		return older[oldest[0]]
	}
	return at(oldest[0], maxLSN)
}

// However entries are spread over tokens, and in whatever order and grouping
// these are merged, the result is that of all entries at once.
func TestMergeAgreesWithModel(t *testing.T) {
	properties(t, func(t *testing.T, g generator) {
		span := 1 + g.IntN(14)
		list := make([]Entry, 1+g.IntN(30))
		for i := range list {
			list[i] = normal(g.entry(span))
			list[i].BroadCovered = false
		}
		tokens := make([]Token, 1+g.IntN(6))
		for _, e := range list {
			i := g.IntN(len(tokens))
			tokens[i] = tokens[i].With(e)
		}
		for len(tokens) > 1 {
			g.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
			tokens = append(tokens[2:], tokens[0].Merge(tokens[1]))
		}
		want := modelOf(list)
		wantEqual(t, tokens[0], want)
		wantEqual(t, FromEntries(list...), want)
	})
}
