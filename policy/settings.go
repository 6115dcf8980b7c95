package policy

import "time"

// Defaults of Settings.
const (
	// DefaultWait is how long a read waits for a replica at most, if one is expected
	// to catch up within that time, before the primary serves it.
	DefaultWait = 50 * time.Millisecond
	// DefaultMaxTokenAge is the age past which a token is not judged any more:
	// the primary serves.
	DefaultMaxTokenAge = 24 * time.Hour
)

// Settings are what a Router goes by. Immutable.
type Settings struct {
	Default     Default
	Balancer    Balancer      // nil: LeastBusy
	Wait        time.Duration // zero: do not wait
	MaxTokenAge time.Duration // zero: any age
	Monotonic   Monotonic     // zero: MonotonicOn
	Mode        Mode          // zero: Normal
	Window      time.Duration // zero: no time window
	Fallback    Fallback
	Rotation    Rotation
}

// Settings returns what the router goes by.
func (r *Router) Settings() *Settings { return r.settings.Load() }

// Use has the router go by s from now on. A decision that is being made may go by
// what was before.
func (r *Router) Use(s Settings) {
	if s.Balancer == nil {
		s.Balancer = LeastBusy()
	}
	r.settings.Store(&s)
}
