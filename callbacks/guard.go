package callbacks

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// keepsFloors reports whether sessions remember what they have read.
func (l *Layer) keepsFloors() bool {
	return l.cfg.Router.Settings().Monotonic != policy.MonotonicOff
}

// guard waits, in mode Strict, until the primary shows what the observers have seen
// on replicas.
func (l *Layer) guard(ctx context.Context, g *watcher.Group, obs *observers) error {
	if l.cfg.Router.Settings().Monotonic != policy.MonotonicStrict {
		return nil
	}
	var sessions []*session.Session
	obs.each(func(s *session.Session) { sessions = append(sessions, s) })
	return l.cfg.Router.Guard(ctx, g, sessions)
}

// guarded is guard for a read of the primary.
func (c *call) guarded(ctx context.Context) error {
	if c.decision.Replica != nil || !c.pure {
		return nil
	}
	err := c.layer.guard(ctx, c.from.Group, &c.observers)
	if err != nil && c.unit != nil {
		c.unit.finish()
	}
	return err
}
