package callbacks

import (
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// cost is how long writes have waited for their positions.
type cost struct{ waits, total atomic.Int64 }

func (c *cost) since(begun mono.Instant) {
	c.waits.Add(1)
	c.total.Add(int64(mono.Now().Sub(begun)))
}

// CaptureCost returns how many writes have waited for a position query of their own or
// shared with others, failed ones included, and for how long in all. Where the
// position comes with the commit nothing is waited for.
func (l *Layer) CaptureCost() (waits int64, total time.Duration) {
	return l.cost.waits.Load(), time.Duration(l.cost.total.Load())
}
