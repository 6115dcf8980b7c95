package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// These tests hold what no noise can touch: allocations, round trips, queries.
// Times are printed by the program and held by nobody.

var shared *env

func TestMain(m *testing.M) {
	var err error
	if shared, err = newEnv(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// The race detector has sync.Pool lose a quarter of what is given back. What is
// lost is the call, which then costs up to three allocations when the next
// statement is routed; so 0.75 a statement are the detector's. One of our own
// for each statement would make it 1.75.
func TestRouteAllocatesNothing(t *testing.T) {
	route, observed := 0.01, 1.01 // the watcher's goroutines allocate meanwhile
	if raceDetector {
		route, observed = 0.9, 1.75
	}
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepared %v", prepared), func(t *testing.T) {
			b, err := openRouteBench(t.Context(), shared, prepared)
			if err != nil {
				t.Fatal(err)
			}
			defer closing(t, b.close)
			atMost(t, "to route a statement", route, b.ours.route)
			atMost(t, "to route it and keep its record", observed, b.ours.routeAndObserve)
		})
	}
}

func atMost(t *testing.T, what string, limit float64, f func() error) {
	t.Helper()
	n, err := allocations(2000, f)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%s: %v allocations", what, n); n > limit {
		t.Errorf("%s: have %v allocations, want at most %v", what, n, limit)
	}
}

func TestReadAllocatesOneRecord(t *testing.T) {
	b, err := openReadBench(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, b.close)
	n, err := b.extraAllocs(300)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%v allocations more than on dbresolver", n); n > 1.75 {
		t.Errorf("have %v allocations more than on dbresolver, want 1", n)
	}
	if err := b.allOnReplicas(); err != nil {
		t.Error(err)
	}
}

func closing(t *testing.T, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestCaptureIsOneRoundTrip(t *testing.T) {
	trips, err := shared.roundTrips(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if trips.without != 3 { // begin, insert, commit
		t.Errorf("without the plugin: have %v round trips for a write, want 3", trips.without)
	}
	if extra := trips.with - trips.without; extra > 1 {
		t.Errorf("with the plugin: have %v more, want at most 1", extra)
	}
	if extra := trips.rywpgx - trips.without; extra != 0 {
		t.Errorf("with the plugin on rywpgx: have %v more, want none", extra)
	}
}

func TestConcurrentCommitsShareQueries(t *testing.T) {
	t.Parallel()
	c, err := shared.capture(t.Context(), captureLoad{writers: 32, each: 25, delay: 500 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v queries per commit, %d commits in %s", c.perCommit(), c.commits, c.took)
	if n := c.perCommit(); n > 0.75 {
		t.Errorf("have %v position queries per commit, want at most 0.5, give or take", n)
	}
}

func TestIdleReplicasAreLeftAlone(t *testing.T) {
	t.Parallel()
	p, err := shared.idle(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v probes per second", p)
	if p.replica > 1 {
		t.Errorf("have %v probes per second of a replica, want at most 1", p.replica)
	}
	if p.replica < 0.1 {
		t.Errorf("have %v probes per second of a replica: it is not watched at all", p.replica)
	}
}
