package history

import "time"

// clock tells nanoseconds since some origin. Clocks of equal domain have the
// same origin.
type clock struct {
	domain string
	origin time.Time
	base   int64 // time of the domain at origin, above 0
}

func (c clock) now() int64 { return c.base + int64(time.Since(c.origin)) }
