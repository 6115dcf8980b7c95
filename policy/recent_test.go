package policy

import (
	"sync"
	"testing"
	"time"
)

func TestRecentRemembersNothingUntold(t *testing.T) {
	r := NewRouter(Settings{})
	r.Counted(nil, &Decision{Reason: Behind})
	if have := r.Recent(); have != nil {
		t.Errorf("have %v", have)
	}
}

func TestRecentIsNewestFirst(t *testing.T) {
	r := NewRouter(Settings{})
	r.Remember()
	want := []Reason{CaughtUp, Behind, CaughtUp, ByStrong}
	for i, why := range want {
		r.Counted(nil, &Decision{Reason: why, Waited: time.Duration(i)})
	}
	r.Remember() // forgets nothing
	have := r.Recent()
	if len(have) != len(want) {
		t.Fatalf("have %d decisions, want %d", len(have), len(want))
	}
	for i, s := range have {
		if made := len(want) - 1 - i; s.Waited != time.Duration(made) || s.Reason != want[made] || s.At == 0 {
			t.Errorf("%d: have %+v, want the one made as number %d", i, s, made)
		}
	}
}

// What is rare stays, however much there is of the rest.
func TestRecentKeepsSomeOfEachReason(t *testing.T) {
	r := NewRouter(Settings{})
	r.Remember()
	r.Counted(nil, &Decision{Reason: Behind})
	for i := range 3 * recentEach {
		r.Counted(nil, &Decision{Reason: CaughtUp, Waited: time.Duration(i)})
	}
	have := r.Recent()
	if len(have) != recentEach+1 {
		t.Fatalf("have %d decisions, want %d", len(have), recentEach+1)
	}
	if newest, last := have[0], have[recentEach]; newest.Waited != 3*recentEach-1 || last.Reason != Behind {
		t.Errorf("have %+v first and %+v last", newest, last)
	}
	if oldest := have[recentEach-1]; oldest.Waited != 2*recentEach {
		t.Errorf("oldest of many: have number %d, want %d", oldest.Waited, 2*recentEach)
	}
}

// A read does not wait for another one, nor for whoever looks.
func TestRecentIsNotWaitedFor(t *testing.T) {
	r := NewRouter(Settings{})
	r.Remember()
	l := &r.recent.Load().of[CaughtUp]
	l.mu.Lock()
	r.Counted(nil, &Decision{Reason: CaughtUp})
	l.mu.Unlock()
	if have := r.Recent(); len(have) != 0 || r.Count(CaughtUp) != 1 {
		t.Errorf("have %v, counted %d", have, r.Count(CaughtUp))
	}
}

func TestRecentAllocatesNothing(t *testing.T) {
	r := NewRouter(Settings{})
	r.Remember()
	if n := testing.AllocsPerRun(100, func() { r.Counted(nil, &Decision{Reason: CaughtUp}) }); n != 0 {
		t.Errorf("have %v allocations a decision, want 0", n)
	}
}

func TestRecentWhileReadsGoOn(t *testing.T) {
	r := NewRouter(Settings{})
	r.Remember()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 500 {
				r.Counted(nil, &Decision{Reason: CaughtUp, Waited: time.Duration(g), Age: time.Duration(g)})
			}
		})
	}
	for range 100 {
		for _, s := range r.Recent() {
			if s.Waited != s.Age {
				t.Errorf("have a mixture of two decisions: %+v", s)
			}
		}
	}
	all.Wait()
}

func BenchmarkRemembered(b *testing.B) {
	for name, remember := range map[string]bool{"forgotten": false, "remembered": true} {
		b.Run(name, func(b *testing.B) {
			r := NewRouter(Settings{})
			if remember {
				r.Remember()
			}
			for b.Loop() {
				r.Counted(nil, &Decision{Reason: CaughtUp})
			}
		})
	}
}
