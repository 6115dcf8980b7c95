package session

// NoteStale records that a read of the session was served stale, outside of the
// guarantee, because too many reads fell back to the primary. What the session must
// see stays as it was.
func (s *Session) NoteStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// Stale reports whether a read of this session, here and not in another process, was
// served stale and marked so.
func (s *Session) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}
