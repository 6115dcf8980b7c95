package token

import "slices"

// roomy is up to how many entries a token has room for the parts that are rare:
// Former and SeenNodes.
const roomy = 6

// Merge returns the token that asks for everything that t and o ask for. It is a
// join: neither the order of merging nor repetition makes a difference, and a
// constraint is never lost. It allocates nothing when the result is t or o.
func (t Token) Merge(o Token) Token {
	switch {
	case o.IsZero() || t.covers(o.entries, o.others):
		return t
	case t.IsZero() || o.covers(t.entries, t.others):
		return o
	default:
		return finish(joinAll(t.entries, o.entries), t.others || o.others)
	}
}

// With returns t merged with the token that has the single entry e. Marks of a
// broad entry so added are pending for every narrower one. A BroadCovered of e is
// ignored: it says something about entries that are not beside e; use Replace.
func (t Token) With(e Entry) Token {
	e = normal(e)
	if e.isEmpty() {
		return t
	}
	one := [1]Entry{e}
	if t.covers(one[:], false) {
		return t
	}
	return finish(joinAll(t.entries, one[:]), t.others)
}

// joinAll returns the join of two sorted lists, sorted, before any limit.
func joinAll(a, b []Entry) []Entry {
	out := make([]Entry, 0, max(len(a), len(b)))
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var e Entry
		switch order := compareAt(a, i, b, j); {
		case order < 0:
			e = a[i]
			i++
		case order > 0:
			e = b[j]
			j++
		default:
			e = join(&a[i], &b[j])
			i, j = i+1, j+1
		}
		e.BroadCovered = max(statusOf(a, e.Key), statusOf(b, e.Key)) == broadResolved
		out = append(out, e)
	}
	return out
}

// compareAt compares the keys of a[i] and b[j]; the end of a list comes last.
func compareAt(a []Entry, i int, b []Entry, j int) int {
	switch {
	case i == len(a):
		return 1
	case j == len(b):
		return -1
	default:
		return a[i].Key.Compare(b[j].Key)
	}
}

// join returns the join of two entries of one key, but for BroadCovered, which
// depends on the entries beside them.
func join(a, b *Entry) Entry {
	w := writes{last: a.Write, former: a.Former}.add(b.Write).add(b.Former)
	e := Entry{Key: a.Key, Write: w.last, Former: w.former, Floor: a.Floor.Max(b.Floor), Minted: a.Minted}
	if b.Minted.After(e.Minted) {
		e.Minted = b.Minted
	}
	e.Wrote = a.Wrote || b.Wrote
	e.SeenPrimary = a.SeenPrimary || b.SeenPrimary
	if !e.SeenPrimary {
		e.SeenNodes = union(a.SeenNodes, b.SeenNodes)
	}
	return e
}

// union returns the union of two sorted sets, one of them where that is it.
func union(a, b []Incarnation) []Incarnation {
	switch {
	case subset(b, a):
		return a
	case subset(a, b):
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// subset reports whether every element of the sorted set a is in b.
func subset(a, b []Incarnation) bool {
	for _, n := range a {
		if _, found := slices.BinarySearch(b, n); !found {
			return false
		}
	}
	return true
}

// finish makes a token of sorted entries, which it owns, and applies the limits.
// Every rule here only ever raises what the token asks for, and holds for each
// larger token once it holds for a smaller one; that keeps Merge a join.
func finish(entries []Entry, others bool) Token {
	if len(entries) > MaxEntries {
		entries, others = slices.Clip(entries[:MaxEntries]), true
	}
	for i := range entries {
		if limitEntry(&entries[i], len(entries)) {
			uncover(entries, entries[i].Key)
		}
	}
	for i := range entries {
		e := &entries[i]
		e.BroadCovered = e.BroadCovered && e.hasPosition() && broadMarked(entries, e.Key)
	}
	if len(entries) == 0 {
		return Token{}
	}
	return Token{entries: entries, others: others}
}

// limitEntry turns what a token of n entries has no room for into marks. It
// reports whether that is a mark which no narrower entry can have covered: those
// that cover seen nodes also cover what the nodes are collapsed to.
func limitEntry(e *Entry, n int) (uncovered bool) {
	if len(e.SeenNodes) > nodeLimit(n) {
		e.SeenPrimary, e.SeenNodes = true, nil
	}
	if n <= roomy || e.Former.IsZero() {
		return false
	}
	e.Wrote, e.Former = true, Position{}
	return true
}

func nodeLimit(n int) int {
	if n > roomy {
		return 0
	}
	return MaxSeenNodes
}
