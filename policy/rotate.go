package policy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// Rotation takes slow replicas out of the choice for reads that ask for nothing. Those
// that have something to see are not concerned: they go by positions. The zero value
// leaves every healthy replica in.
type Rotation struct {
	// High is the lag above which a replica leaves rotation. Zero: none does. It has
	// to be behind in bytes, too: an idle primary makes nobody slow.
	High time.Duration
	// Low is the lag below which it has to stay for Settle to come back.
	Low, Settle time.Duration
	// Keep is how many of a set stay in rotation however slow they are, the least slow
	// first.
	Keep int
	// StuckAfter is how long a replica may be out before it is reported as stuck. Zero:
	// none is.
	StuckAfter time.Duration
}

// rotating is who is out of rotation.
type rotating struct {
	mu  sync.Mutex // protects all
	of  map[*Replica]*standing
	lag func(*Replica) (time.Duration, bool) // nil: the watcher's
}

// standing is what is known of one replica between two calls of Rotate.
type standing struct {
	lag      time.Duration
	known    bool         // whether lag is
	outSince mono.Instant // zero: it is in
	lowSince mono.Instant // out and below Low since; zero: it is not
	stuck    bool         // and reported
	minutes  minutes
}

// Turn is a change of one replica's place in rotation.
type Turn struct {
	Replica *Replica
	// Lag is what it was when that was decided.
	Lag time.Duration
	// Out is how long it has been out; zero for one that leaves.
	Out time.Duration
	// Stuck says that it has been out for longer than Rotation.StuckAfter, and stays
	// out; otherwise it left or, if Out is not zero, came back.
	Stuck bool
}

// Rotate looks at the lag of every replica and says what changed. It is to be called
// every now and then, with the time; several callers are no harm.
func (r *Router) Rotate(now mono.Instant) []Turn {
	w := &r.rotating
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[*Replica]*standing{}
	}
	var turns []Turn
	seen := map[*Set]bool{}
	for _, p := range r.Pools.All() {
		if p.Set != nil && !seen[p.Set] {
			seen[p.Set] = true
			turns = append(turns, w.turn(p.Set, &r.Settings().Rotation, now)...)
		}
	}
	return turns
}

func (w *rotating) turn(set *Set, ro *Rotation, now mono.Instant) (turns []Turn) {
	in := 0
	slowest := slices.Clone(set.Replicas)
	for _, rep := range set.Replicas {
		w.measure(rep, now)
		if rep.serves() {
			in++
		}
	}
	slices.SortStableFunc(slowest, func(a, b *Replica) int { return cmp.Compare(w.of[b].lag, w.of[a].lag) })
	for _, rep := range slowest {
		st := w.of[rep]
		if ro.High > 0 && st.outSince == 0 && st.known && st.lag > ro.High && rep.serves() && in > ro.Keep {
			in--
			st.outSince, st.lowSince, st.stuck = now, 0, false
			rep.out.Store(true)
			turns = append(turns, Turn{Replica: rep, Lag: st.lag})
		}
	}
	for _, rep := range slices.Backward(slowest) { // the least slow comes back first
		st := w.of[rep]
		if st.outSince == 0 {
			continue
		}
		switch {
		case ro.High <= 0, rep.Node.State().Healthy && in < ro.Keep, st.settled(ro, now):
			turns = append(turns, Turn{Replica: rep, Lag: st.lag, Out: now.Sub(st.outSince)})
			st.outSince = 0
			rep.out.Store(false)
			in++
		case ro.StuckAfter > 0 && !st.stuck && now.Sub(st.outSince) > ro.StuckAfter:
			st.stuck = true
			turns = append(turns, Turn{Replica: rep, Lag: st.lag, Out: now.Sub(st.outSince), Stuck: true})
		}
	}
	return turns
}

// measure notes how far a replica is behind.
func (w *rotating) measure(rep *Replica, now mono.Instant) {
	st := w.of[rep]
	if st == nil {
		st = &standing{}
		w.of[rep] = st
	}
	lag := w.lag
	if lag == nil {
		lag = lagOf
	}
	st.lag, st.known = lag(rep)
	if st.known {
		st.minutes.note(now, st.lag)
	}
}

// lagOf is a replica's lag by the watcher: at least that, where it has been behind for
// longer than positions are remembered.
func lagOf(rep *Replica) (lag time.Duration, known bool) {
	lag, known = rep.Node.Lag()
	return lag, known || lag > 0
}

// settled reports whether a replica that is out has been fast for long enough.
func (s *standing) settled(ro *Rotation, now mono.Instant) bool {
	switch {
	case !s.known || s.lag >= ro.Low && s.lag > 0:
		s.lowSince = 0
	case s.lowSince == 0:
		s.lowSince = now
	}
	return s.lowSince != 0 && now.Sub(s.lowSince) >= ro.Settle
}

// serves reports whether a replica serves reads that ask for nothing.
func (r *Replica) serves() bool { return !r.out.Load() && r.Node.State().Healthy }

// pickHealthy chooses among the healthy replicas in rotation, or else among all that
// are healthy.
func (r *Router) pickHealthy(q *Request) *Replica {
	q.spare = true
	rep := r.pick(q, isHealthy)
	q.spare = false
	if rep == nil {
		rep = r.pick(q, isHealthy)
	}
	return rep
}

// Standing is a replica's place in rotation.
type Standing struct {
	// Lag is how long it was behind when Rotate looked last; Known says whether that
	// could be told.
	Lag   time.Duration
	Known bool
	// Out is how long it has been out of rotation; zero: it is in. Stuck says that
	// this is longer than Rotation.StuckAfter.
	Out   time.Duration
	Stuck bool
	// Worst is the greatest lag of the last hour.
	Worst time.Duration
}

// Standing returns a replica's place as Rotate saw it last.
func (r *Router) Standing(rep *Replica, now mono.Instant) Standing {
	w := &r.rotating
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.of[rep]
	if st == nil {
		return Standing{}
	}
	s := Standing{Lag: st.lag, Known: st.known, Stuck: st.stuck && st.outSince != 0, Worst: st.minutes.max(now)}
	if st.outSince != 0 {
		s.Out = now.Sub(st.outSince)
	}
	return s
}

// minutes is the greatest lag of each minute of the last hour.
type minutes struct {
	of [60]struct {
		minute int64 // since the clock began, counted from 1
		lag    time.Duration
	}
}

func minuteOf(now mono.Instant) int64 { return int64(now)/int64(time.Minute) + 1 }

func (m *minutes) note(now mono.Instant, lag time.Duration) {
	minute := minuteOf(now)
	slot := &m.of[minute%int64(len(m.of))]
	if slot.minute != minute {
		slot.minute, slot.lag = minute, 0
	}
	slot.lag = max(slot.lag, lag)
}

func (m *minutes) max(now mono.Instant) (worst time.Duration) {
	for _, slot := range m.of {
		if slot.minute > minuteOf(now)-int64(len(m.of)) && slot.minute <= minuteOf(now) {
			worst = max(worst, slot.lag)
		}
	}
	return worst
}
