package watcher

import (
	"math"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// EstimateLife is how old a replica's answer may be for an estimate to be based on
// it. A replica that stood still a moment ago may be up to date by now.
const EstimateLife = 20 * time.Millisecond

// Never is later than anything.
const Never mono.Instant = math.MaxInt64

// ExpectedAt estimates when the node will have replayed a position: as long after the
// primary was there as the node was behind when it was last asked. Where the primary
// was at which time this process knows from the positions it has captured and
// sampled, a millisecond apart or more. Nothing speaks against a time that has
// passed. Never if replay is paused.
//
// The estimate, made at the time now, is not known if the last answer is older than
// [EstimateLife].
func (n *Node) ExpectedAt(want token.Position, now mono.Instant) (at mono.Instant, known bool) {
	st := n.State()
	if st.Failed || st.Begun == 0 || now.Sub(st.Received) > EstimateLife {
		return now, false
	}
	if st.Paused {
		return Never, true
	}
	g := n.group
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := g.recent.passed(want.Timeline, want.LSN)
	if wanted == 0 { // the primary was not seen there yet
		wanted = now
	}
	// The first position that the node lacks is one byte past its own.
	lacks := g.recent.passed(st.Position.Timeline, st.Position.LSN+1)
	if lacks == 0 || lacks > st.Begun {
		return wanted, true
	}
	return wanted.Add(st.Begun.Sub(lacks)), true
}

// passed returns when the primary was first seen at or past a position; zero if it
// was not. Timeline 0 is whichever the primary is on.
func (h *history) passed(timeline uint32, lsn token.LSN) mono.Instant {
	var first mono.Instant
	for i := range historySize {
		p := &h.at[(h.next+2*historySize-1-i)%historySize] // the newest first
		if p.begun == 0 || p.pos.LSN < lsn || timeline != 0 && p.pos.Timeline != timeline {
			break
		}
		first = p.begun
	}
	return first
}
