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

// guard is called before the observers read a primary: it must have what they have
// seen, and, in mode Strict, show it. It reports what a failover may have lost.
func (l *Layer) guard(ctx context.Context, g *watcher.Group, obs *observers) (lost bool, err error) {
	if l.plain() {
		return false, nil
	}
	var few [4]*session.Session
	sessions := obs.list(few[:0])
	if lost, err = l.cfg.Router.CheckPrimary(ctx, g, sessions); err != nil {
		return false, err
	}
	return lost, l.cfg.Router.Guard(ctx, g, sessions)
}

// judge looks once more what may have been lost: the primary that answered may have
// been promoted after the read was decided.
func (c *call) judge() {
	if c.decision.Replica != nil || !c.pure || c.lost || c.decision.Lost {
		return
	}
	var few [4]*session.Session
	c.decision.Lost = c.layer.cfg.Router.Lost(c.layer.ctx, c.from.Group, c.observers.list(few[:0]), !c.missed)
}

// guarded is guard for a read of the primary.
func (c *call) guarded(ctx context.Context) error {
	if c.decision.Err != nil {
		return c.decision.Err
	}
	if c.decision.Replica != nil || !c.pure {
		return nil
	}
	lost, err := c.layer.guard(ctx, c.from.Group, &c.observers)
	c.decision.Lost = c.decision.Lost || lost
	if err != nil && c.unit != nil {
		c.unit.finish()
	}
	return err
}
