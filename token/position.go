package token

import (
	"cmp"
	"strconv"
)

// Position is a place in one timeline of a cluster's write-ahead log. The zero
// value is no position. A position without a timeline (Timeline 0, LSN above
// zero) is bare: somebody knew an LSN and not where it belongs.
type Position struct {
	// Timeline is PostgreSQL's timeline number: one from initdb on, raised by
	// every promotion. Zero means unknown.
	Timeline uint32
	// LSN is the place in the timeline. Zero means no position at all.
	LSN LSN
}

// IsZero reports whether p is no position.
func (p Position) IsZero() bool { return p.LSN == 0 }

// IsBare reports whether p is an LSN whose timeline is not known.
func (p Position) IsBare() bool { return p.Timeline == 0 && p.LSN != 0 }

// Compare orders positions by timeline, then by LSN. A later timeline is later
// whatever the LSN is, because LSNs of different timelines cannot be compared:
// after a failover a lost write's LSN may look replayed on a server that never
// had it. Bare positions come before all others.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Timeline, q.Timeline); c != 0 {
		return c
	}
	return cmp.Compare(p.LSN, q.LSN)
}

// Max returns the later of p and q.
func (p Position) Max(q Position) Position {
	if p.Compare(q) < 0 {
		return q
	}
	return p
}

// String returns the timeline and LSN, for example "2:0/3000060"; a bare
// position is an LSN alone, no position is "none".
func (p Position) String() string {
	switch {
	case p.IsZero():
		return "none"
	case p.IsBare():
		return p.LSN.String()
	default:
		return strconv.FormatUint(uint64(p.Timeline), 10) + ":" + p.LSN.String()
	}
}
