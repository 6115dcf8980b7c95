package policy

import (
	"slices"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// recentEach is how many decisions are remembered for each reason: were it one
// store for all, rare reasons would be gone before anybody looks.
const recentEach = 32

// Seen is a final decision and when it became so.
type Seen struct {
	Decision
	At mono.Instant
}

// recent is what a router remembers: for each reason the latest, those left out that
// two reads made at the very same time.
type recent struct{ of [reasons]latest }

type latest struct {
	mu   sync.Mutex // protects what follows; no read waits for it
	at   [recentEach]Seen
	next int
}

func (l *latest) add(d *Decision) {
	if !l.mu.TryLock() {
		return
	}
	l.at[l.next] = Seen{*d, mono.Now()}
	l.next = (l.next + 1) % recentEach
	l.mu.Unlock()
}

// Remember has the router remember recent decisions, from now on. Until it is called
// none are: each then costs some tens of nanoseconds, and no allocation.
func (r *Router) Remember() { r.recent.CompareAndSwap(nil, &recent{}) }

// Recent returns the latest decisions of each reason, newest first.
func (r *Router) Recent() []Seen {
	m := r.recent.Load()
	if m == nil {
		return nil
	}
	var all []Seen
	for i := range m.of {
		l := &m.of[i]
		l.mu.Lock()
		for _, s := range l.at {
			if s.At != 0 {
				all = append(all, s)
			}
		}
		l.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Seen) int { return int(b.At.Sub(a.At)) })
	return all
}
