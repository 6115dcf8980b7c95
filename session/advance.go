package session

import (
	"slices"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// The methods of this file are how capture and routing tell a session what
// happened. Applications have no need of them.

// Advance records a position of the primary of cluster key, taken by a query
// that began at begun: after whatever the session did there before. It is the
// position of a write when wrote is set or when a write of unknown position was
// marked, otherwise a floor for later reads. Marks set and nodes read before
// begun are thereby resolved.
func (s *Session) Advance(key token.Key, pos token.Position, begun mono.Instant, wrote bool) {
	s.mu.Lock()
	defer s.unlock()
	old, _ := s.tok.Entry(key)
	e := token.Entry{Key: key, Minted: s.readDate(key), Floor: pos}
	if wrote {
		e.Minted = time.Now()
	}
	if wrote || old.Wrote {
		e.Floor, e.Write = token.Position{}, pos
	}
	s.keepLine(key, pos.Timeline, begun > s.markedAt)
	tok := s.tok.With(e)
	e, listed := tok.Entry(key)
	if !listed {
		s.tok = tok // which says that there was no room
		return
	}
	if begun > s.markedAt {
		e.Wrote, e.SeenPrimary, e.BroadCovered = false, false, true
		s.covered.note(key, begun)
	}
	s.tok = tok.Replace(e)
	s.newest = max(s.newest, begun)
	s.reads = slices.DeleteFunc(s.reads, func(r NodeRead) bool { return r.Key == key && r.At < begun })
}

// Renew is Advance for a read that went to the primary because the token had
// outlived its maximal age: what was known of the cluster is replaced, not
// merged, unless something new was recorded meanwhile.
func (s *Session) Renew(key token.Key, pos token.Position, begun mono.Instant) {
	s.mu.Lock()
	if begun > s.markedAt && begun >= s.newest {
		s.tok = s.tok.Replace(token.Entry{Key: key, Minted: time.Now(), Floor: pos})
	}
	s.mu.Unlock()
	s.Advance(key, pos, begun, false)
}

// MarkWrote records an acknowledged write, or one whose outcome is unknown,
// whose position is not known. The zero key stands for any cluster.
func (s *Session) MarkWrote(key token.Key) { s.mark(key, token.Marks{Wrote: true}) }

// MarkSawPrimary records a read of the primary whose position is not known.
func (s *Session) MarkSawPrimary(key token.Key) { s.mark(key, token.Marks{SeenPrimary: true}) }

// MarkWroteOn is MarkWrote of a write to a primary on a known timeline; zero is not
// known.
func (s *Session) MarkWroteOn(key token.Key, timeline uint32) {
	s.mu.Lock()
	defer s.unlock()
	e := token.Entry{Key: key, Wrote: true, Minted: time.Now()}
	if timeline != 0 {
		e.Write = token.Position{Timeline: timeline, LSN: 1}
	}
	s.tok = s.tok.With(e)
	s.marked(key)
}

func (s *Session) mark(key token.Key, m token.Marks) {
	s.mu.Lock()
	defer s.unlock()
	s.addMark(key, m)
}

func (s *Session) addMark(key token.Key, m token.Marks) {
	minted := time.Now()
	if !m.Wrote {
		minted = s.readDate(key)
	}
	s.tok = s.tok.Mark(key, m, minted)
	s.marked(key)
}

func (s *Session) marked(key token.Key) {
	s.markedAt = mono.Now()
	s.marks.note(key, s.markedAt)
}

// readDate is the date of what is read now: none of its own beside a write, whose
// date is what a time window counts from. What was read would lengthen it for ever.
func (s *Session) readDate(key token.Key) time.Time {
	if e, ok := s.tok.Entry(key); ok && holdsWrite(&e) {
		return time.Time{}
	}
	return time.Now()
}

func holdsWrite(e *token.Entry) bool {
	return e.Wrote || !e.Write.IsZero() || !e.Former.IsZero()
}

// ReadNode records that a query had been answered by a replica by the time at.
// An incarnation of zero is that of a replica of which nothing is proven.
func (s *Session) ReadNode(key token.Key, node token.Incarnation, at mono.Instant) {
	s.mu.Lock()
	defer s.unlock()
	s.noteRead(key, node, at)
}

func (s *Session) noteRead(key token.Key, node token.Incarnation, at mono.Instant) {
	s.noteAhead(key)
	for i := range s.reads {
		if r := &s.reads[i]; r.Key == key && r.Node == node {
			r.At = max(r.At, at)
			return
		}
	}
	if node == 0 || len(s.reads) == MaxReads {
		s.addMark(key, token.Marks{SeenPrimary: true})
		s.reads = slices.DeleteFunc(s.reads, func(r NodeRead) bool { return r.Key == key })
		return
	}
	s.reads = append(s.reads, NodeRead{Key: key, Node: node, At: at})
}

// SettleRead records the position of a replica that had been read, taken by a
// query that began at begun. It becomes a floor if the query began after the
// newest read of that node; otherwise nothing changes.
func (s *Session) SettleRead(key token.Key, node token.Incarnation, pos token.Position, begun mono.Instant) {
	s.mu.Lock()
	defer s.unlock()
	i := slices.IndexFunc(s.reads, func(r NodeRead) bool { return r.Key == key && r.Node == node })
	if i < 0 || s.reads[i].At >= begun {
		return
	}
	s.reads = slices.Delete(s.reads, i, i+1)
	s.keepLine(key, pos.Timeline, false)
	s.tok = s.tok.With(token.Entry{Key: key, Floor: pos, Minted: s.readDate(key)})
	s.newest = max(s.newest, begun)
}

// LoseNode turns the read of a node whose incarnation has ended into a read of
// the primary of unknown position, which covers whatever that node had shown.
func (s *Session) LoseNode(key token.Key, node token.Incarnation) {
	s.mu.Lock()
	defer s.unlock()
	i := slices.IndexFunc(s.reads, func(r NodeRead) bool { return r.Key == key && r.Node == node })
	if i < 0 {
		return
	}
	s.reads = slices.Delete(s.reads, i, i+1)
	s.addMark(key, token.Marks{SeenPrimary: true})
}

// BeginWrite notes that a read-write transaction of this session is under way:
// until EndWrite the session's reads outside it go to the primary.
func (s *Session) BeginWrite() { s.addOpen(1) }

// EndWrite ends what BeginWrite began.
func (s *Session) EndWrite() { s.addOpen(-1) }

func (s *Session) addOpen(n int) {
	s.mu.Lock()
	s.open += n
	s.mu.Unlock()
}

// Await records a write in a transaction whose end cannot be observed. Until done
// says that it has ended, the session's reads outside it go to the primary; from
// then on the write is one of unknown position. done must be quick and must not
// call the session.
func (s *Session) Await(key token.Key, done func() bool) {
	s.MarkWrote(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = append(s.awaited, awaited{key, done})
}

// settleAwaited marks the writes whose transactions have ended anew: only a
// position asked for from now on covers them.
func (s *Session) settleAwaited() {
	s.awaited = slices.DeleteFunc(s.awaited, func(a awaited) bool {
		if !a.done() {
			return false
		}
		s.addMark(a.key, token.Marks{Wrote: true})
		return true
	})
}
