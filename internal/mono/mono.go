// Package mono is the one clock of this library: monotonic time of the process
// in nanoseconds. "Begun after", on which every proof of freshness rests, is a
// comparison of two of its readings; the wall clock may be set back and is
// never used for that.
package mono

import "time"

// Instant is a reading of the process's monotonic clock, in nanoseconds since
// the package was initialised. The zero value means "never".
type Instant int64

var base = time.Now().Add(-time.Nanosecond)

// Now reads the clock. It is always after the zero Instant.
func Now() Instant { return Instant(time.Since(base)) }

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Add returns t plus d.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }
