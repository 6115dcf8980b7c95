package session

import "github.com/gorm-ryw/gorm-ryw/token"

// unknownLSN stands for a write that was somewhere on a timeline: no end of one
// covers it.
const unknownLSN token.LSN = 1<<56 - 1

// keepLine is called before a position on a later timeline is recorded: what was
// read on the timeline that is left, and a write there that is known by its mark
// alone, stay to be compared with where it ended.
func (s *Session) keepLine(key token.Key, timeline uint32, resolves bool) {
	e, ok := s.tok.Entry(key)
	if !ok {
		return
	}
	if e.Floor.Timeline != 0 && e.Floor.Timeline < timeline {
		s.tok = s.tok.With(token.Entry{Key: key, Write: e.Floor})
	}
	if resolves && e.Wrote && e.Write.Timeline != 0 && e.Write.Timeline < timeline {
		s.tok = s.tok.With(token.Entry{Key: key, Write: token.Position{Timeline: e.Write.Timeline, LSN: unknownLSN}})
	}
}

// keepLines is keepLine for what is merged, in both directions.
func (s *Session) keepLines(t token.Token) {
	for i := range t.Len() {
		e := t.At(i)
		if e.Floor.IsZero() {
			continue
		}
		s.keepLine(e.Key, e.Floor.Timeline, false)
		if own, _ := s.tok.Entry(e.Key); own.Floor.Timeline > e.Floor.Timeline {
			s.tok = s.tok.With(token.Entry{Key: e.Key, Write: e.Floor})
		}
	}
}

// Judged records that a timeline was left at end, and that whatever the session
// knows of it up to there is in the history of timeline now.
func (s *Session) Judged(key token.Key, timeline uint32, end token.LSN, now uint32) {
	s.mu.Lock()
	defer s.unlock()
	e, ok := s.tok.Entry(key)
	if !ok {
		return
	}
	safe := func(p token.Position) bool { return p.Timeline == timeline && p.LSN <= end }
	covered := token.Position{Timeline: now, LSN: end}
	if safe(e.Former) {
		e.Former = token.Position{}
	}
	if safe(e.Write) && e.Former.IsZero() && !e.Wrote { // which is of that timeline, too
		e.Write = covered
	}
	if safe(e.Floor) {
		e.Floor = covered
	}
	s.tok = s.tok.Replace(e)
}
