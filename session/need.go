package session

import (
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// MaxReads bounds the replicas of unknown position that a session remembers one
// by one. More of them are remembered as one read of the primary, which covers
// them all.
const MaxReads = 8

// NodeRead is a read of a replica whose position at that time is not known yet.
type NodeRead struct {
	Key  token.Key
	Node token.Incarnation
	At   mono.Instant // when the newest such read had ended
}

// Need is what a session asks of the node that serves its next read of one
// cluster. The zero value asks nothing.
type Need struct {
	// Position must have been replayed, on its timeline.
	Position token.Position
	// Bare must have been replayed on whatever timeline the primary is on.
	Bare token.LSN
	// Marked says that something is to be seen whose position is not known:
	// only the primary will do, or a node at or past a position of the primary
	// asked for after MarkedAt.
	Marked   bool
	MarkedAt mono.Instant
	// Aged says that a token was older than the maximal age.
	Aged bool
	// Elsewhere says that the token was too large to name this cluster.
	Elsewhere bool
	// WritesOnly, set beforehand, has what was read not count.
	WritesOnly bool
	// Open says that a read-write transaction of the session is under way.
	Open bool
	// Written is when the newest write was written down, as far as tokens say so;
	// Undated says that there is one of which they do not.
	Written time.Time
	Undated bool

	lines  [maxLines]token.Position
	nlines int

	reads  [MaxReads]NodeRead
	nreads int
}

// maxLines bounds the timelines of which a need speaks. The oldest are left out.
const maxLines = 4

// Lines returns the highest position on each timeline that the sessions speak of.
// The slice is part of n.
func (n *Need) Lines() []token.Position { return n.lines[:n.nlines] }

func (n *Need) addLine(p token.Position) {
	if p.Timeline == 0 {
		return
	}
	oldest := 0
	for i, have := range n.Lines() {
		if have.Timeline == p.Timeline {
			n.lines[i] = have.Max(p)
			return
		}
		if have.Timeline < n.lines[oldest].Timeline {
			oldest = i
		}
	}
	switch {
	case n.nlines < maxLines:
		n.lines[n.nlines] = p
		n.nlines++
	case p.Timeline > n.lines[oldest].Timeline:
		n.lines[oldest] = p
	}
}

// Reads returns the nodes of unknown position that were read: one of them may
// serve if it is the only one, another node only at or past their positions.
// The slice is part of n.
func (n *Need) Reads() []NodeRead { return n.reads[:n.nreads] }

// None reports whether any healthy node will do.
func (n *Need) None() bool {
	return n.Position.IsZero() && n.Bare == 0 && n.nreads == 0 && !n.PrimaryOnly()
}

// PrimaryOnly reports whether no replica will do until the primary's position
// was asked for.
func (n *Need) PrimaryOnly() bool { return n.Marked || n.Aged || n.Elsewhere || n.Open }

// Need adds to n what s asks of the next read of cluster key. Entries minted
// before oldest are too old to be judged. It does not allocate.
func (s *Session) Need(n *Need, key token.Key, oldest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.awaited) > 0 {
		s.settleAwaited()
	}
	n.Open = n.Open || s.open > 0 || len(s.awaited) > 0
	covered := s.isCovered(key)
	for i := range s.tok.Len() {
		e := s.tok.At(i)
		if e.Key.Constrains(key) {
			n.add(&e, key, oldest, covered)
		}
	}
	if n.Marked || s.tok.BroadPending(key) && !covered {
		n.Marked = true
		n.MarkedAt = max(n.MarkedAt, s.markedAt)
	}
	n.Elsewhere = n.Elsewhere || s.tok.OthersConstrain(key) && !covered
	for _, r := range s.reads {
		if !n.WritesOnly && r.Key.Constrains(key) {
			n.addRead(r)
		}
	}
}

func (s *Session) isCovered(key token.Key) bool {
	if begun := s.covered.of(key); begun == 0 || begun <= s.markedAt {
		return false
	}
	_, listed := s.tok.Entry(key) // or there was no room for it
	return listed
}

func (n *Need) add(e *token.Entry, key token.Key, oldest time.Time, covered bool) {
	positions := [2]token.Position{e.Write, e.Floor}
	if n.WritesOnly {
		positions[1] = token.Position{}
	}
	for _, p := range positions {
		n.addLine(p)
		if p.Timeline == 0 {
			n.Bare = max(n.Bare, p.LSN)
		} else if p.Compare(n.Position) > 0 {
			n.Position = p
		}
	}
	if holdsWrite(e) {
		n.Undated = n.Undated || e.Minted.IsZero()
		if e.Minted.After(n.Written) {
			n.Written = e.Minted
		}
	}
	n.addLine(e.Former)
	if e.Former.IsBare() {
		n.Bare = max(n.Bare, e.Former.LSN)
	}
	if covered {
		return
	}
	// Marks of broader entries are judged by BroadPending.
	if (e.Wrote || e.SeenPrimary && !n.WritesOnly) && !broader(e.Key, key) {
		n.Marked = true
	}
	if !e.Minted.IsZero() && e.Minted.Before(oldest) {
		n.Aged = true
	}
}

func (n *Need) addRead(r NodeRead) {
	for i := range n.Reads() {
		if n.reads[i].Node == r.Node {
			n.reads[i].At = max(n.reads[i].At, r.At)
			return
		}
	}
	if n.nreads == MaxReads {
		n.Marked, n.MarkedAt = true, max(n.MarkedAt, r.At)
		return
	}
	n.reads[n.nreads] = r
	n.nreads++
}

// Want is the position to be covered, for explanations: the larger of Position
// and Bare.
func (n *Need) Want() token.Position {
	if n.Bare > n.Position.LSN {
		return token.Position{Timeline: n.Position.Timeline, LSN: n.Bare}
	}
	return n.Position
}

// broader reports whether k names fewer properties of a cluster than key.
func broader(k, key token.Key) bool {
	return k != key && (k.System == 0 || k.System == key.System) && (k.Name == 0 || k.Name == key.Name)
}
