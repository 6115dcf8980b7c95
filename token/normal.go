package token

import (
	"slices"
	"time"
)

// What the text form has room for. PostgreSQL reaches neither: 72 petabytes of
// write-ahead log and two million promotions of one cluster.
const (
	maxTimeline = 1<<21 - 1
	maxLSN      = 1<<56 - 1
	maxMinted   = 1<<42 - 1 // milliseconds; in the year 2109
)

// normal returns the entry in normal form, sharing nothing with e. Whatever
// cannot be written down becomes the mark that the primary's position resolves,
// which asks for at least as much.
func normal(e Entry) Entry {
	write, wideWrite := representable(e.Write)
	former, wideFormer := representable(e.Former)
	floor, wideFloor := representable(e.Floor)
	w := writes{}.add(write).add(former)
	if floor.IsBare() {
		w, floor = w.add(floor), Position{}
	}
	n := Entry{Key: e.Key, Write: w.last, Former: w.former, Floor: floor}
	n.Wrote = e.Wrote || wideWrite || wideFormer
	n.SeenPrimary, n.SeenNodes = normalSeen(e.SeenPrimary || wideFloor, e.SeenNodes)
	if n.isEmpty() {
		return n
	}
	n.Minted = normalMinted(e.Minted)
	n.BroadCovered = e.BroadCovered && n.hasPosition()
	return n
}

// representable returns p, or no position and whether that is because the text
// form has no room for it.
func representable(p Position) (_ Position, wide bool) {
	if p.IsZero() {
		return Position{}, false
	}
	if p.Timeline > maxTimeline || p.LSN > maxLSN {
		return Position{}, true
	}
	return p, false
}

func normalSeen(primary bool, nodes []Incarnation) (bool, []Incarnation) {
	if primary || len(nodes) == 0 {
		return primary, nil
	}
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if nodes[0] == 0 || len(nodes) > MaxSeenNodes {
		return true, nil
	}
	return false, nodes
}

// normalMinted cuts a time to milliseconds and drops its location and monotonic
// reading, so that it is equal after a round trip.
func normalMinted(minted time.Time) time.Time {
	switch {
	case minted.Before(time.UnixMilli(1)):
		return time.Time{}
	case minted.After(time.UnixMilli(maxMinted)):
		return time.UnixMilli(maxMinted).UTC()
	default:
		return time.UnixMilli(minted.UnixMilli()).UTC()
	}
}

// isEmpty reports whether the entry asks for nothing.
func (e *Entry) isEmpty() bool { return !e.hasPosition() && !e.Marked() }

// hasPosition needs no look at Former, which never stands without Write.
func (e *Entry) hasPosition() bool { return !e.Write.IsZero() || !e.Floor.IsZero() }

// same reports whether two entries in normal form are equal.
func same(a, b Entry) bool {
	return a.Key == b.Key && a.Write == b.Write && a.Floor == b.Floor && a.Former == b.Former &&
		a.Minted.Equal(b.Minted) && a.Wrote == b.Wrote && a.SeenPrimary == b.SeenPrimary &&
		a.BroadCovered == b.BroadCovered && slices.Equal(a.SeenNodes, b.SeenNodes)
}

// writes collects write positions: the last one, and the one on an older
// timeline that Entry.Former speaks of.
type writes struct{ last, former Position }

// add returns w with p. In which order positions are added makes no difference.
func (w writes) add(p Position) writes {
	switch {
	case p.IsZero():
	case w.last.IsZero():
		w.last = p
	case p.Timeline == w.last.Timeline:
		w.last = w.last.Max(p)
	case p.Timeline > w.last.Timeline:
		w.last, w.former = p, preferFormer(w.former, w.last)
	default:
		w.former = preferFormer(w.former, p)
	}
	return w
}

// preferFormer makes one of two. Those of two timelines have room as one that is
// beyond any end of the older timeline: whichever was lost stays possibly lost.
func preferFormer(a, b Position) Position {
	switch {
	case a.IsZero() || b.IsBare() && !a.IsBare():
		return b
	case b.IsZero() || a.IsBare() && !b.IsBare():
		return a
	case a.Timeline == b.Timeline:
		return a.Max(b)
	}
	return Position{Timeline: min(a.Timeline, b.Timeline), LSN: maxLSN}
}
