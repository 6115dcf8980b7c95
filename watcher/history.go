package watcher

import (
	"context"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// history remembers positions of the primary and when they were asked for, so
// that "how stale is this replica" has an answer in time.
type history struct {
	at   [historySize]past
	next int
	step time.Duration // the least time between two of them; zero: historyStep
}

type past struct {
	begun, received mono.Instant
	system          uint64
	pos             token.Position
}

// The histories of a primary reach back a quarter of a second, 5 seconds and 8 minutes
// or more.
const (
	historySize = 256
	historyStep = 20 * time.Millisecond
	ageStep     = 2 * time.Second
	recentStep  = time.Millisecond
)

func (h *history) add(s Sample) {
	last := h.at[(h.next+historySize-1)%historySize]
	if last.begun != 0 && (last.system != s.System || last.pos.Timeline != s.Position.Timeline) {
		*h, last = history{step: h.step}, past{} // another history
	}
	step := h.step
	if step == 0 {
		step = historyStep
	}
	if last.begun != 0 && s.Begun.Sub(last.begun) < step {
		return
	}
	h.at[h.next] = past{s.Begun, s.Received, s.System, s.Position}
	h.next = (h.next + 1) % historySize
}

// since returns the oldest position asked for at from or later.
func (h *history) since(from mono.Instant) (token.Position, bool) {
	for i := range historySize {
		if p := h.at[(h.next+i)%historySize]; p.begun >= from && p.begun != 0 {
			return p.pos, true
		}
	}
	return token.Position{}, false
}

// MaxLag is up to what lag a replica that has been behind all the time is told apart
// from one that is behind for longer, see [Node.Lag].
const MaxLag = 8 * time.Minute

// lag is by how much time what s says was behind the primary when it was asked for:
// at most that long before, the primary was still there. If no remembered position
// is that old, ok is false and the lag is at least what is returned.
func (h *history) lag(s *Sample) (lag time.Duration, ok bool) {
	oldest := past{}
	for i := range historySize {
		p := h.at[(h.next+2*historySize-1-i)%historySize] // the newest first
		switch {
		case p.begun == 0 || p.system != s.System || p.pos.Timeline != s.Position.Timeline:
			return atLeast(s, oldest), false
		case p.pos.LSN <= s.Position.LSN && oldest.begun == 0: // not known to be behind
			return 0, true
		case p.pos.LSN <= s.Position.LSN:
			return s.Begun.Sub(p.begun), true
		case p.received <= s.Begun:
			oldest = p
		}
	}
	return atLeast(s, oldest), false
}

// atLeast is how long before s was asked for the primary had passed a position.
func atLeast(s *Sample, passed past) time.Duration {
	if passed.begun == 0 {
		return 0
	}
	return s.Begun.Sub(passed.received)
}

// Lag is by how much time a replica was behind its primary when it was last asked
// for its position: at most that long before, the primary was still where the
// replica was. It is too long by no more than what lies between two remembered
// positions of the primary: some 20 ms where there are writes, a probe's interval
// where there are none, 2 s from a lag of 5 s on. Zero if the replica had all that
// the primary was known to have by then.
//
// It is not known while one of the two does not answer, while they are on different
// timelines, and when the replica has been behind for longer than positions are
// remembered, 8 minutes or more: then the lag is at least what is returned.
func (n *Node) Lag() (lag time.Duration, known bool) {
	g := n.group
	g.mu.Lock()
	defer g.mu.Unlock()
	st := n.state.Load()
	if n.role == Primary || st.Failed || !st.Standby || !g.Primary.State().Healthy {
		return 0, false
	}
	if lag, known = g.past.lag(&st.Sample); known {
		return lag, true
	}
	if longer, known := g.ages.lag(&st.Sample); known || longer > lag {
		return longer, known
	}
	return lag, false
}

// PositionSince returns a position that the primary had at some time within the
// last d. A node that has replayed it is at most d stale. If none is remembered,
// the primary is asked.
func (g *Group) PositionSince(ctx context.Context, d time.Duration) (token.Position, error) {
	g.mu.Lock()
	p, ok := g.past.since(mono.Now().Add(-d))
	g.mu.Unlock()
	if ok {
		return p, nil
	}
	s, err := g.Primary.Sample(ctx)
	return s.Position, err
}
