//go:build !linux

package proxy

import "time"

// clock sleeps by the runtime's timers, which are precise where the system's
// poller takes nanoseconds (kqueue).
type clock struct {
	done <-chan struct{} // closed before interrupt is called
}

func (c *clock) sleepUntil(due time.Time) bool { return sleep(time.Until(due), c.done) }

func (c *clock) interrupt() {}

func (c *clock) close() {}
