package policy

import (
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// ReadCount is how many reads asked for a level and went where they went for a
// reason.
type ReadCount struct {
	Level  Level
	Reason Reason
	Count  int64
}

// tally counts reads by level and reason. The zero value has counted none.
type tally [levels][reasons]atomic.Int64

func (t *tally) add(d *Decision) { t[d.Level][d.Reason].Add(1) }

// counts returns what was counted, without zeros.
func (t *tally) counts() (all []ReadCount) {
	for l := range t {
		for why := range t[l] {
			if n := t[l][why].Load(); n > 0 {
				all = append(all, ReadCount{Level(l), Reason(why), n})
			}
		}
	}
	return all
}

func (t *tally) of(why Reason) (n int64) {
	for l := range t {
		n += t[l][why].Load()
	}
	return n
}

// Reads returns how many reads the replica was sent, by level and reason.
func (r *Replica) Reads() []ReadCount { return r.reads.counts() }

// counters are those of one cluster.
type counters struct {
	reads     tally // of the primary
	nowhere   tally // that failed
	tokens    atomic.Int64
	fallbacks [reasons]atomic.Int64
	waits     [2]waits // in vain; for a replica
	lost      atomic.Int64
	beyond    atomic.Int64
	resolved  atomic.Int64
}

// Stats is what was counted of one cluster.
type Stats struct {
	// Reads are those that the primary served.
	Reads []ReadCount
	// TokenReads had something to see and a replica to see it on. Fallbacks are
	// those of them that the primary served because no replica qualified, by
	// reason. The zeros are in it, so that a rate of each is known from the start.
	TokenReads int64
	Fallbacks  map[Reason]int64
	// OtherFallbacks are reads that the primary served for the same reasons and that
	// had nothing to see: a bound on staleness at most.
	OtherFallbacks map[Reason]int64
	// Overloaded are reads that failed with ErrOverloaded, ServedStale those that a cap
	// had served outside of the guarantee instead.
	Overloaded, ServedStale int64
	// FallingBack is how many that fell back are under way, if there is a cap on that.
	FallingBack int
	// Awaited are the waits of reads that a replica served in the end, InVain of
	// those that none did.
	Awaited, InVain Waits
	// PossiblyLost are reads under sessions that hold something which may not have
	// survived a failover.
	PossiblyLost int64
	// BeyondPrimary are reads under positions that the primary turned out not to
	// have: what they stood for was lost, or they are made up.
	BeyondPrimary int64
	// MarksResolved are reads that found the position of an earlier write or read
	// which was but a mark.
	MarksResolved int64
}

// Stats returns what was counted of a cluster.
func (r *Router) Stats(g *watcher.Group) Stats {
	c := r.counters(g)
	st := Stats{
		Reads: c.reads.counts(), TokenReads: c.tokens.Load(), Fallbacks: map[Reason]int64{},
		InVain: c.waits[0].load(), Awaited: c.waits[1].load(),
		PossiblyLost: c.lost.Load(), BeyondPrimary: c.beyond.Load(), MarksResolved: c.resolved.Load(),
	}
	gov := r.Pools.governorOf(g)
	st.OtherFallbacks, st.Overloaded, st.ServedStale = gov.shed()
	st.FallingBack = gov.underWay()
	for why := range c.fallbacks {
		if Reason(why).Fallback() {
			st.Fallbacks[Reason(why)] = c.fallbacks[why].Load()
		}
	}
	return st
}

// Count returns how many reads went where they went for the given reason.
func (r *Router) Count(why Reason) (n int64) {
	if m := r.counts.Load(); m != nil {
		for _, c := range *m {
			n += c.reads.of(why) + c.nowhere.of(why)
		}
	}
	for _, p := range r.Pools.All() {
		if p.Replica != nil {
			n += p.Replica.reads.of(why)
		}
	}
	return n
}

// Counted adds a decision that is final to the counters of a cluster.
func (r *Router) Counted(g *watcher.Group, d *Decision) {
	c := r.counters(g)
	served := 0
	if d.Err != nil {
		c.nowhere.add(d)
	} else if d.Replica != nil {
		served = 1
		d.Replica.reads.add(d)
	} else {
		c.reads.add(d)
	}
	if d.Judged {
		c.tokens.Add(1)
		if d.Replica == nil && d.Reason.Fallback() {
			c.fallbacks[d.Reason].Add(1)
		}
	}
	if d.Waited > 0 {
		c.waits[served].add(d.Waited)
	}
	if d.Lost {
		c.lost.Add(1)
	}
	if m := r.recent.Load(); m != nil {
		m.of[d.Reason].add(d)
	}
}

// counters returns those of a cluster, from a map that is copied when it grows.
func (r *Router) counters(g *watcher.Group) *counters {
	for {
		m := r.counts.Load()
		if m != nil {
			if c := (*m)[g]; c != nil {
				return c
			}
		}
		next := map[*watcher.Group]*counters{g: {}}
		if m != nil {
			for k, v := range *m {
				next[k] = v
			}
		}
		r.counts.CompareAndSwap(m, &next)
	}
}

// WaitBounds are the upper bounds of the buckets that waits are counted in.
var WaitBounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
}

// Waits is a histogram of waits.
type Waits struct {
	// Counts has one number for each of WaitBounds, of the waits up to it and above
	// the one before, and one for those above the last.
	Counts [len(WaitBounds) + 1]int64
	// Sum is the time spent.
	Sum time.Duration
}

type waits struct {
	counts [len(WaitBounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (w *waits) add(d time.Duration) {
	i := 0
	for i < len(WaitBounds) && d > WaitBounds[i] {
		i++
	}
	w.counts[i].Add(1)
	w.sum.Add(int64(d))
}

func (w *waits) load() (h Waits) {
	for i := range w.counts {
		h.Counts[i] = w.counts[i].Load()
	}
	h.Sum = time.Duration(w.sum.Load())
	return h
}
