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
// passed. Never if replay is paused, or nothing that the node says can be proved now.
//
// The estimate, made at the time now, is not known if the last answer is older than
// [EstimateLife].
func (n *Node) ExpectedAt(want token.Position, now mono.Instant) (at mono.Instant, known bool) {
	st := n.State()
	if st.Failed || st.Begun == 0 || now.Sub(st.At) > EstimateLife {
		return now, false
	}
	if st.Paused || st.held {
		return Never, true
	}
	g := n.group
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := g.recent.passed(want.Timeline, want.LSN)
	if wanted == 0 { // the primary was not seen there yet
		wanted = now
	}
	return wanted.Add(n.pace.behind(&g.recent, &st.Sample)), true
}

// paceLife is for how long a replica that was so far behind is expected to be it still.
const paceLife = 200 * time.Millisecond

// pace is by how much time a replica was behind of late. One sample tells little where
// writes are rare: only that the replica lacked the next position of the primary that
// was seen, which may be one of just now, and had all up to the one before.
type pace struct {
	lag time.Duration
	at  mono.Instant
}

// behind returns by how much time at least the replica of a sample is behind, by it and
// by those of before that it does not contradict.
func (p *pace) behind(h *history, s *Sample) time.Duration {
	has, lacks := h.around(s.Position)
	lag := time.Duration(0)
	if lacks != 0 {
		lag = max(0, s.Begun.Sub(lacks))
	}
	if s.Begun.Sub(p.at) < paceLife && p.lag > lag && has != 0 {
		lag = min(p.lag, max(lag, s.Received.Sub(has)))
	}
	p.lag, p.at = lag, s.Begun
	return lag
}

// around returns when the primary was last seen at or before a position, and first past
// it; zero if it was not.
func (h *history) around(pos token.Position) (has, lacks mono.Instant) {
	for i := range historySize {
		p := &h.at[(h.next+2*historySize-1-i)%historySize] // the newest first
		switch {
		case p.begun == 0 || p.pos.Timeline != pos.Timeline:
			return 0, lacks
		case p.pos.LSN <= pos.LSN:
			return p.begun, lacks
		}
		lacks = p.begun
	}
	return 0, lacks
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
