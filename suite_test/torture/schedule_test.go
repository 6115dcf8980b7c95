package main

import (
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
	for deck := range 50 {
		seen := map[Kind]bool{}
		for range kinds {
			seen[s.Next().Kind] = true
		}
		if len(seen) != int(kinds) {
			t.Errorf("deck %d has %d kinds, want %d", deck, len(seen), kinds)
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
			if st.Kind != Promote {
				t.Errorf("%s is lossy", st.Kind)
			}
		}
		if st.Drop {
			drops++
		}
		if st.With != nil {
			riders++
			if !st.With.Kind.ofReplica() || st.With.With != nil {
				t.Errorf("rider: %s", st.With)
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
		if actions[k] == nil && k != Promote {
			t.Errorf("%s has no action", k)
		}
	}
}
