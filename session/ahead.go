package session

import "github.com/gorm-ryw/gorm-ryw/token"

// ahead counts what a session has seen of one cluster on replicas, by itself or by
// way of a token, and up to where the primary is known to show it.
type ahead struct {
	key         token.Key
	seen, shown uint64
}

func (s *Session) noteAhead(key token.Key) {
	for i := range s.ahead {
		if a := &s.ahead[i]; a.key == key {
			a.seen++
			return
		}
	}
	s.ahead = append(s.ahead, ahead{key: key, seen: 1})
}

// Ahead reports whether the session may have seen something of cluster key on a
// replica that the primary does not show yet, and what Shown wants to be told.
func (s *Session) Ahead(key token.Key) (mark uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.ahead {
		ok = ok || a.key.Constrains(key) && a.seen > a.shown
		if a.key == key {
			mark = a.seen
		}
	}
	return mark, ok
}

// Shown records that the primary of cluster key shows by now whatever the session
// had seen of it when Ahead returned mark. What it has seen of a cluster that was not
// known by name stays in doubt.
func (s *Session) Shown(key token.Key, mark uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ahead {
		if a := &s.ahead[i]; a.key == key {
			a.shown = max(a.shown, mark)
		}
	}
}
