package main

import (
	"slices"
	"testing"
	"time"
)

// first returns the first steps of a schedule, in words.
func first(seed uint64, lossless bool, n int) []string {
	s := NewSchedule(seed, lossless)
	var list []string
	for range n {
		st := s.Next()
		list = append(list, st.String())
	}
	return list
}

func TestTheSeedDeterminesTheSchedule(t *testing.T) {
	const steps = 500
	a, again, b := first(7, false, steps), first(7, false, steps), first(8, false, steps)
	same := 0
	for i := range a {
		if a[i] != again[i] {
			t.Fatalf("step %d: have %q, then %q", i+1, a[i], again[i])
		}
		if a[i] == b[i] {
			same++
		}
	}
	if same > steps/10 {
		t.Errorf("%d of %d steps are those of another seed", same, steps)
	}
}

func TestEveryKindIsInEveryDeck(t *testing.T) {
	s := NewSchedule(1, false)
	var dealt []Kind
	for len(dealt) < 50*int(kinds) {
		st := s.Next()
		dealt = append(dealt, st.Kind)
		if st.With != nil {
			dealt = append(dealt, st.With.Kind)
		}
	}
	for deck := range slices.Chunk(dealt[:50*int(kinds)], int(kinds)) {
		seen := map[Kind]bool{}
		for _, k := range deck {
			seen[k] = true
		}
		if len(seen) != int(kinds) {
			t.Errorf("a deck has %d kinds, want %d: %v", len(seen), kinds, deck)
		}
	}
}

// What is drawn must make sense for its kind, and all of it must happen.
func TestStepsMakeSense(t *testing.T) {
	s := NewSchedule(3, false)
	var ballast, lossy, riders, drops int
	for range 1000 {
		st := s.Next()
		if st.Hold < 100*time.Millisecond || st.Hold > time.Second || st.Gap <= 0 {
			t.Fatalf("%s: hold %s, gap %s", st.Kind, st.Hold, st.Gap)
		}
		if st.Ballast > 0 {
			ballast++
			if !st.Kind.crashes() {
				t.Errorf("%s has ballast", st.Kind)
			}
		}
		if st.Lossy {
			lossy++
			if !st.Kind.failsOver() {
				t.Errorf("%s is lossy", st.Kind)
			}
		}
		if st.Kind.failsOver() && st.Kind != Promote && !st.Lossy {
			t.Errorf("%s loses nothing", st.Kind)
		}
		if (st.Frozen > 0) != (st.Kind == FreezeWorkers) {
			t.Errorf("%s freezes %d workers", st.Kind, st.Frozen)
		}
		if st.Drop {
			drops++
		}
		if st.With != nil {
			riders++
			w := st.With
			if !w.Kind.ofReplica() && w.Kind != FreezeWorkers || w.With != nil || w.Ballast > 0 {
				t.Errorf("rider: %s", w)
			}
			if st.Kind.failsOver() && w.Kind != PauseReplay && w.Kind != FreezeWorkers {
				t.Errorf("a failover with %s", w)
			}
		}
	}
	if min(ballast, lossy, riders, drops) == 0 {
		t.Errorf("of 1000 steps: %d with ballast, %d lossy, %d with riders, %d that drop", ballast, lossy, riders, drops)
	}
}

func TestLosslessSchedulesDifferInNothingElse(t *testing.T) {
	lossy, lossless := NewSchedule(5, false), NewSchedule(5, true)
	for n := range 200 {
		a, b := lossy.Next(), lossless.Next()
		if b.Lossy {
			t.Fatalf("step %d loses writes", n+1)
		}
		a.Lossy = false
		if a.String() != b.String() {
			t.Fatalf("step %d: have %q, want %q", n+1, b.String(), a.String())
		}
	}
}

func TestEveryKindHasANameAndAnAction(t *testing.T) {
	for k := range kinds {
		if kindNames[k] == "" {
			t.Errorf("kind %d has no name", k)
		}
		if actions[k] == nil && (&director{}).courses()[k] == nil {
			t.Errorf("%s has no action", k)
		}
	}
}
