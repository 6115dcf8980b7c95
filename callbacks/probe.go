package callbacks

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/internal/routeprobe"
	"gorm.io/gorm"
)

var _ routeprobe.Call = (*call)(nil)

// Choose implements routeprobe.Call.
func (c *call) Choose(ctx context.Context, query string) gorm.ConnPool {
	if err := c.decide(ctx, query); err != nil {
		return nil
	}
	return c.target
}

// Forget implements routeprobe.Call.
func (c *call) Forget() {
	if rep := c.decision.Replica; rep != nil {
		rep.End()
	}
	c.release()
}
