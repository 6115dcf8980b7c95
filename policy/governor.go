package policy

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Fallback caps the reads that a primary serves because no replica qualifies. The
// zero value caps nothing.
type Fallback struct {
	// Rate is how many such reads a second may begin, for each primary and process.
	// Zero: no cap.
	Rate float64
	// Burst is how many may begin at once after a quiet time. Zero: as many as in a
	// second.
	Burst int
	// Concurrent is how many may be under way at a time. Zero: no cap.
	Concurrent int
	// Wait is how much longer than Settings.Wait a read above a cap waits, for a
	// replica or for its turn. Zero: not at all.
	Wait time.Duration
	// Stale has a read that waited in vain served by any healthy replica, outside of
	// the guarantee and marked, see Decision.Stale. False: it fails with ErrOverloaded.
	Stale bool
}

func (f *Fallback) burst() float64 {
	if f.Burst > 0 {
		return float64(f.Burst)
	}
	return max(1, f.Rate)
}

// governor keeps the reads that fall back to one primary below the caps, and counts
// them.
type governor struct {
	other      [reasons]atomic.Int64 // reads that fell back without anything to see
	overloaded atomic.Int64
	stale      atomic.Int64

	front chan struct{} // holds a value while somebody waits for his turn in front
	freed chan struct{} // has a value after a read has ended

	mu      sync.Mutex // protects what follows
	credit  float64    // reads that may begin at filled
	filled  mono.Instant
	running int
}

// governor returns the one of a group's primary.
func (p *Pools) governor(g *watcher.Group) *governor {
	gov := p.governors[g]
	if gov == nil {
		gov = &governor{front: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		if p.governors == nil {
			p.governors = map[*watcher.Group]*governor{}
		}
		p.governors[g] = gov
	}
	return gov
}

// governorOf is governor for callers that do not hold the lock.
func (p *Pools) governorOf(g *watcher.Group) *governor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.governor(g)
}

// refusal is the cap that a read is above of, and when it is worth another try: zero
// if that is when another one ends.
type refusal struct {
	running, most int     // of the cap on how many are under way
	rate          float64 // of the cap on how many may begin
	retry         time.Duration
}

func (r *refusal) String() string {
	if r.rate > 0 {
		return fmt.Sprintf("too many a second, want %g at most", r.rate)
	}
	return fmt.Sprintf("%d would be under way, want %d at most", r.running+1, r.most)
}

// take lets a read fall back now, or says which cap is reached. What it returns is to
// be released when the read has ended; nil if that is not counted.
func (g *governor) take(f *Fallback, now mono.Instant) (*permit, *refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Concurrent > 0 && g.running >= f.Concurrent {
		return nil, &refusal{running: g.running, most: f.Concurrent}
	}
	if f.Rate > 0 {
		g.fill(f, now)
		if g.credit < 1 {
			wait := time.Duration((1 - g.credit) / f.Rate * float64(time.Second))
			return nil, &refusal{rate: f.Rate, retry: wait + 1}
		}
		g.credit--
	}
	if f.Concurrent == 0 {
		return nil, nil
	}
	g.running++
	return newPermit(g), nil
}

func (g *governor) fill(f *Fallback, now mono.Instant) {
	if g.filled == 0 {
		g.credit = f.burst()
	}
	g.credit = min(f.burst(), g.credit+f.Rate*max(0, now.Sub(g.filled)).Seconds())
	g.filled = max(g.filled, now)
}

func (g *governor) release() {
	g.mu.Lock()
	g.running--
	g.mu.Unlock()
	select {
	case g.freed <- struct{}{}:
	default:
	}
}

func (g *governor) underWay() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// permit is the place of one read that is under way. One that nobody holds any more,
// as after a panic, is given back by the garbage collector.
type permit struct {
	g       *governor
	ended   atomic.Bool
	cleanup runtime.Cleanup
}

func newPermit(g *governor) *permit {
	p := &permit{g: g}
	p.cleanup = runtime.AddCleanup(p, (*governor).release, g)
	return p
}

// End gives the place back. Idempotent, and nil has none.
func (p *permit) End() {
	if p == nil || p.ended.Swap(true) {
		return
	}
	p.cleanup.Stop()
	p.g.release()
	runtime.KeepAlive(p)
}

// shed returns what was counted of reads that had nothing to see and fell back, of
// those that failed for a cap, and of those served stale instead.
func (g *governor) shed() (other map[Reason]int64, overloaded, stale int64) {
	other = map[Reason]int64{}
	for why := range g.other {
		if n := g.other[why].Load(); n > 0 {
			other[Reason(why)] = n
		}
	}
	return other, g.overloaded.Load(), g.stale.Load()
}
