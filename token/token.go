package token

import (
	"slices"
	"time"
)

// Limits of a token. What exceeds them is not lost: see the package comment on
// limits.
const (
	// MaxEntries is how many entries a token lists.
	MaxEntries = 16
	// MaxSeenNodes is how many incarnations one entry lists.
	MaxSeenNodes = 8
	// MaxText is the length of the longest text that Parse looks at, in bytes.
	MaxText = 1024
)

// Token is what a session's next read must not fall behind: an immutable value
// with at most one entry per Key, in the order of the keys. The zero value is the
// empty token, which asks for nothing. Tokens may be copied and used
// concurrently; compare them with Equal.
type Token struct {
	entries []Entry // sorted by key, each in normal form; never written to
	others  bool    // only beside MaxEntries entries: larger keys were dropped
}

// FromLSN returns the token of a bare LSN: a write position, on a timeline that
// is not known, of whatever cluster the token is used with. It is empty for zero.
func FromLSN(l LSN) Token {
	return FromEntries(Entry{Write: Position{LSN: l}})
}

// FromEntries returns the token of the given entries, brought into normal form;
// entries of the same key are merged. Entries that ask for nothing are left out.
func FromEntries(entries ...Entry) Token {
	list := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if e = normal(e); !e.isEmpty() {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return a.Key.Compare(b.Key) })
	return finish(foldEqualKeys(list), false)
}

func foldEqualKeys(sorted []Entry) []Entry {
	out := sorted[:0]
	for _, e := range sorted {
		if n := len(out); n > 0 && out[n-1].Key == e.Key {
			covered := out[n-1].BroadCovered && e.BroadCovered
			out[n-1] = join(&out[n-1], &e)
			out[n-1].BroadCovered = covered
			continue
		}
		out = append(out, e)
	}
	return out
}

// IsZero reports whether the token is empty and so asks for nothing.
func (t Token) IsZero() bool { return len(t.entries) == 0 }

// Len returns the number of entries.
func (t Token) Len() int { return len(t.entries) }

// At returns the i-th entry in the order of the keys and panics if there is none.
// It allocates nothing: SeenNodes is shared with the token and must not be
// written to.
func (t Token) At(i int) Entry { return t.entries[i] }

// Entry returns the entry of exactly this key and whether there is one; wildcards
// match only themselves. SeenNodes is shared as with At.
func (t Token) Entry(k Key) (Entry, bool) {
	if e := find(t.entries, k); e != nil {
		return *e, true
	}
	return Entry{}, false
}

// Entries returns a copy of all entries in the order of the keys, nil for the
// empty token.
func (t Token) Entries() []Entry {
	list := slices.Clone(t.entries)
	for i := range list {
		list[i].SeenNodes = slices.Clone(list[i].SeenNodes)
	}
	return list
}

// Others reports whether entries had to be dropped because there were more than
// MaxEntries. Which clusters that is about, OthersConstrain tells.
func (t Token) Others() bool { return t.others }

// OthersConstrain reports whether an entry that constrains the given cluster may
// have been dropped. Only the primary can serve such a cluster. Merging never
// turns true into false.
func (t Token) OthersConstrain(cluster Key) bool {
	return t.others && t.dropped(cluster.last())
}

// dropped reports whether k belongs to the keys that a full token has no room
// for. A key that is smaller than a listed one was never dropped, as the smallest
// are kept.
func (t Token) dropped(k Key) bool {
	return k.Compare(t.entries[len(t.entries)-1].Key) > 0
}

// BroadPending reports whether an entry with a broader key than k has marks that
// the entry of k does not cover. Whoever resolves them says so by Replace with
// BroadCovered set, as the broader entry itself has to stay for other clusters.
// It looks only at keys that are k with fields left open, and not at entries that
// were dropped, of which OthersConstrain tells.
func (t Token) BroadPending(k Key) bool {
	return statusOf(t.entries, k) == broadPending
}

// Equal reports whether both tokens ask for the same; their texts are equal then
// and only then.
func (t Token) Equal(o Token) bool {
	return t.others == o.others && slices.EqualFunc(t.entries, o.entries, same)
}

// Mark returns t with marks added to the entry of key k, pending for all narrower
// entries. The time says when the mark was set; zero means unknown.
func (t Token) Mark(k Key, m Marks, minted time.Time) Token {
	return t.With(Entry{
		Key: k, Minted: minted,
		Wrote: m.Wrote, SeenPrimary: m.SeenPrimary, SeenNodes: m.SeenNodes,
	})
}

// Replace returns t with e in place of the entry of the same key: the way to drop
// marks that were resolved and a Former that was judged, and, with BroadCovered,
// to state that e's positions also cover the marks of all broader entries. An
// entry that asks for nothing removes the key; if entries have been dropped from
// t it stays listed, empty, because a key that is not listed counts as dropped.
// Marks that the former entry did not have are pending for all narrower entries.
func (t Token) Replace(e Entry) Token {
	e = normal(e)
	old := Entry{Key: e.Key}
	i, found := slices.BinarySearchFunc(t.entries, e.Key, func(e Entry, k Key) int { return e.Key.Compare(k) })
	if found {
		old = t.entries[i]
	}
	if same(old, e) {
		return t
	}
	list := make([]Entry, 0, len(t.entries)+1)
	list = append(list, t.entries[:i]...)
	if t.others || !e.isEmpty() {
		list = append(list, e)
	}
	if found {
		i++
	}
	list = append(list, t.entries[i:]...)
	if !old.includesMarks(&e) {
		uncover(list, e.Key)
	}
	return finish(list, t.others)
}
