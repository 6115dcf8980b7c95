package token

// covers reports, allocating nothing, whether merging the given entries into t
// would give t.
func (t Token) covers(entries []Entry, others bool) bool {
	if others && !t.others {
		return false
	}
	for i := range entries {
		if !t.coversEntry(&entries[i]) {
			return false
		}
	}
	if !anyBroadMarked(entries) {
		return true
	}
	for i := range t.entries {
		k := t.entries[i].Key
		if statusOf(entries, k) > statusOf(t.entries, k) {
			return false
		}
	}
	return true
}

// coversEntry looks at one entry by itself, without BroadCovered.
func (t Token) coversEntry(e *Entry) bool {
	own := find(t.entries, e.Key)
	if own == nil {
		return t.others && t.dropped(e.Key)
	}
	return t.coversWrites(own, e) &&
		own.Floor.Compare(e.Floor) >= 0 &&
		own.includesMarks(e) &&
		!own.Minted.Before(e.Minted)
}

func (t Token) coversWrites(own, e *Entry) bool {
	w := writes{last: own.Write, former: own.Former}.add(e.Write).add(e.Former)
	if w.last != own.Write {
		return false
	}
	if len(t.entries) <= roomy || w.former.IsZero() {
		return w.former == own.Former
	}
	// No room for it: it would become a mark that nothing has covered yet.
	return own.Wrote && !anyCovered(t.entries, e.Key)
}

// includesMarks reports whether e has every mark that o has, or a stronger one.
func (e *Entry) includesMarks(o *Entry) bool {
	if o.Wrote && !e.Wrote {
		return false
	}
	return e.SeenPrimary || !o.SeenPrimary && subset(o.SeenNodes, e.SeenNodes)
}

// find returns the entry of exactly this key, nil if there is none.
func find(entries []Entry, k Key) *Entry {
	for i := range entries {
		if entries[i].Key == k {
			return &entries[i]
		}
	}
	return nil
}
