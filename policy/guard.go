package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Monotonic is how far it is guaranteed that a session's later read never sees an
// older state than an earlier one.
type Monotonic uint8

// The modes.
const (
	// MonotonicOn keeps floors for what was read. One blind spot is left: a replica
	// shows a commit some milliseconds before the primary does.
	MonotonicOn Monotonic = iota
	// MonotonicStrict closes it: before a session that has read replicas reads the
	// primary, both are asked whether the primary shows what the replicas did. That
	// costs two round trips at such a switch, and a wait where it does not.
	MonotonicStrict
	// MonotonicOff keeps no floors: sessions see their writes, and nothing else is
	// promised.
	MonotonicOff

	monotonics
)

func (m Monotonic) String() string {
	switch m {
	case MonotonicOn:
		return "On"
	case MonotonicStrict:
		return "Strict"
	case MonotonicOff:
		return "Off"
	}
	return fmt.Sprintf("Monotonic(%d)", uint8(m))
}

// Valid reports whether m is one of the modes.
func (m Monotonic) Valid() bool { return m < monotonics }

// ErrNotMonotonic is returned, in mode Strict, for a read of the primary that might
// not show what the session has seen on a replica, and did not within a second.
var ErrNotMonotonic = errors.New("gorm-ryw: the primary does not show yet what the session has seen on a replica")

// guardFor is how long a read waits for that.
const guardFor = time.Second

// The pauses between two looks at the primary.
const (
	guardPause    = time.Millisecond
	maxGuardPause = 20 * time.Millisecond
)

// guard is one switch of sessions from replicas to the primary of a group.
type guard struct {
	group    *watcher.Group
	sessions []*session.Session
	marks    []uint64
	floor    token.Position // where the replica has to be that bears witness
}

// Guard is to be called before sessions read a group's primary. In mode Strict it
// returns once the primary shows what they have seen on replicas, or with
// ErrNotMonotonic.
func (r *Router) Guard(ctx context.Context, g *watcher.Group, sessions []*session.Session) error {
	if r.Settings().Monotonic != MonotonicStrict {
		return nil
	}
	w := guard{group: g}
	for _, s := range sessions {
		if mark, ok := s.Ahead(g.Key()); ok {
			w.sessions, w.marks = append(w.sessions, s), append(w.marks, mark)
		}
	}
	if len(w.sessions) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, guardFor, fmt.Errorf("guard timeout of %s passed", guardFor))
	defer cancel()
	if err := w.run(ctx); err != nil {
		if ctx.Err() == nil {
			return err // the primary cannot be asked, and so hardly read
		}
		return fmt.Errorf("%w: %w", ErrNotMonotonic, err)
	}
	for i, s := range w.sessions {
		s.Shown(g.Key(), w.marks[i])
	}
	return nil
}

// run waits until the primary shows everything.
func (w *guard) run(ctx context.Context) error {
	if err := w.settle(ctx); err != nil {
		return err
	}
	behind := 0
	for pause := guardPause; ; pause = min(2*pause, maxGuardPause) {
		shot, err := w.group.Primary.Snapshot(ctx)
		if err == nil {
			var witness bool
			if behind, witness = w.witnessed(ctx, shot); !witness {
				return w.allEnded(ctx)
			}
			if behind == 0 {
				return nil
			}
			err = rest(ctx, pause)
		}
		if err != nil {
			return fmt.Errorf("%d transactions are not shown: %w", behind, err)
		}
	}
}

// settle finds out how far the sessions have seen. What a replica that is gone has
// shown, the primary has covered with its position.
func (w *guard) settle(ctx context.Context) error {
	var need session.Need
	for _, s := range w.sessions {
		s.Need(&need, w.group.Key(), time.Time{})
	}
	w.floor = need.Position
	for _, read := range need.Reads() {
		s, err := w.positionOf(ctx, read.Node)
		if err != nil {
			return err
		}
		w.floor = w.floor.Max(s)
	}
	return nil
}

func (w *guard) positionOf(ctx context.Context, life token.Incarnation) (token.Position, error) {
	for _, n := range w.group.Replicas() {
		if n.State().Incarnation != life {
			continue
		}
		if s, err := n.Sample(ctx); err == nil && s.Incarnation == life {
			return s.Position, nil
		}
	}
	s, err := w.group.Primary.Sample(ctx)
	if err != nil && ctx.Err() == nil {
		w.group.Primary.Redial() // it may have failed before, and be back
		s, err = w.group.Primary.Sample(ctx)
	}
	return s.Position, err
}

// witnessed asks a replica that has what the sessions have seen how many of its
// commits the primary's snapshot does not show. It is false if there is none.
func (w *guard) witnessed(ctx context.Context, shot watcher.Snapshot) (behind int, ok bool) {
	for _, n := range w.group.Replicas() {
		if st := n.State(); !st.Proven || !reaches(st.Position, w.floor) {
			continue
		}
		behind, at, err := n.AheadOf(ctx, shot)
		if err == nil && reaches(at, w.floor) {
			return behind, true
		}
	}
	return 0, false
}

func reaches(have, want token.Position) bool {
	return have.LSN >= want.LSN && (want.Timeline == 0 || have.Timeline == want.Timeline)
}

// allEnded waits until every transaction has ended that is under way now: without a
// witness any of them may be what was seen.
func (w *guard) allEnded(ctx context.Context) error {
	under, err := w.group.Primary.Running(ctx)
	for pause := guardPause; err == nil && len(under) > 0; pause = min(2*pause, maxGuardPause) {
		var now []uint64
		if err = rest(ctx, pause); err == nil {
			now, err = w.group.Primary.Running(ctx)
		}
		if err == nil {
			under = both(under, now)
		}
	}
	if err != nil {
		return fmt.Errorf("%d transactions are under way: %w", len(under), err)
	}
	return nil
}

// both returns what is in a and b.
func both(a, b []uint64) []uint64 {
	in := map[uint64]bool{}
	for _, x := range b {
		in[x] = true
	}
	var r []uint64
	for _, x := range a {
		if in[x] {
			r = append(r, x)
		}
	}
	return r
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
