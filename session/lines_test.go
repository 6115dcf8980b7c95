package session

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// What a failover has lost stays to be reported through the next ones, whatever was
// written in between.
func TestWhatWasLostIsRememberedThroughFailovers(t *testing.T) {
	key := token.Key{System: 7}
	s := New()
	step := func(timeline uint32, lsn token.LSN, wrote bool) {
		s.Advance(key, token.Position{Timeline: timeline, LSN: lsn}, 1, wrote)
	}
	step(1, 900, true) // lost: timeline 1 ends at 800
	step(2, 1000, true)
	s.Judged(key, 1, 800, 2)
	step(3, 2000, true)
	s.Judged(key, 1, 800, 3)
	s.Judged(key, 2, 1500, 3) // everything of timeline 2 survived
	for name, ses := range map[string]*Session{"going on": s, "in another process": New(s.Token())} {
		var n Need
		ses.Need(&n, key, time.Time{})
		lost := false
		for _, p := range n.Lines() {
			lost = lost || p.Timeline == 1 && p.LSN > 800
		}
		if !lost {
			t.Errorf("%s: have %v, want a position beyond the end of timeline 1", name, n.Lines())
		}
	}
}
