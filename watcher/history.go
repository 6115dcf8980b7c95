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
	step time.Duration // the least between two of them; zero: historyStep
	at   [historySize]past
	next int
}

type past struct {
	begun  mono.Instant
	system uint64
	pos    token.Position
}

const (
	historySize = 256
	historyStep = 20 * time.Millisecond
)

func (h *history) add(s Sample) {
	last := h.at[(h.next+historySize-1)%historySize]
	if last.begun != 0 && (last.system != s.System || last.pos.Timeline != s.Position.Timeline) {
		*h, last = history{step: h.step}, past{} // another history
	}
	if s.Begun.Sub(last.begun) < max(h.step, historyStep) {
		return
	}
	h.at[h.next] = past{s.Begun, s.System, s.Position}
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
