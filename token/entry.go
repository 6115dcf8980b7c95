package token

import "time"

// Entry is what a token says about the clusters of one key. The zero value says
// nothing.
type Entry struct {
	// Key says which clusters the entry is about.
	Key Key
	// Write (W) is the position that covers every write of the session whose
	// position is known. Zero means none.
	Write Position
	// Floor (F) is the position of the newest state that the session has read.
	// Zero means none. A floor has a timeline: a bare one is kept as a bare
	// Write, which asks for the same.
	Floor Position
	// Former is the highest write position on an older timeline than Write's. It
	// is kept until somebody has compared it with the point where that timeline
	// was left: beyond it the write may be lost. Of several older timelines it is
	// the end of all positions of the oldest, which no such point covers. A bare position is kept here in
	// preference to any other, as its LSN may belong to Write's timeline and so
	// must still be reached. Zero means none.
	Former Position
	// Minted is when the entry's newest part was written down, in UTC with the
	// resolution of a millisecond: in an entry with a write, its newest write. A
	// time window counts from it. Zero means unknown.
	Minted time.Time
	// Wrote is the mark of an acknowledged write whose position is not known.
	Wrote bool
	// SeenPrimary is the mark of a read on the primary whose position is not
	// known. It includes SeenNodes, which is empty beside it: the primary's
	// position is at or beyond that of every standby.
	SeenPrimary bool
	// BroadCovered says that this entry's positions cover every mark of the
	// entries whose key is broader than this one's. It is kept only where there
	// are such marks and a position.
	BroadCovered bool
	// SeenNodes is the mark of reads on nodes whose position is not known: a
	// sorted set of at most MaxSeenNodes. A larger one becomes SeenPrimary.
	SeenNodes []Incarnation
}

// Marks are the marks of an Entry by themselves. The zero value is no mark.
type Marks struct {
	// Wrote, SeenPrimary and SeenNodes are the fields of Entry of the same name.
	// An incarnation of zero in SeenNodes (a node whose life is not known)
	// becomes SeenPrimary.
	Wrote, SeenPrimary bool
	SeenNodes          []Incarnation
}

// Marked reports whether the entry has a mark.
func (e Entry) Marked() bool {
	return e.Wrote || e.SeenPrimary || len(e.SeenNodes) > 0
}

// Marks returns the entry's marks. SeenNodes is shared with the entry.
func (e Entry) Marks() Marks {
	return Marks{Wrote: e.Wrote, SeenPrimary: e.SeenPrimary, SeenNodes: e.SeenNodes}
}
