package main

import (
	"testing"
	"time"
)

// However many wait for a replica, one probe serves them all, and one answer wakes them.
func TestWaitersShareProbes(t *testing.T) {
	s, err := openSite(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, s.close)
	if _, err := s.rows(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	w, err := s.openSensor(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, func() error { return w.close(t.Context()) })
	a, err := s.waitersWoken(t.Context(), w, 1000, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", a)
	if a.probes > 200 {
		t.Errorf("have %v probes per second for 1000 waiters, want some 100 at most", a.probes)
	}
	if a.probesBetween > 2 { // some may be running late on a busy machine
		t.Errorf("have %d probes between the first that woke and the last, want none", a.probesBetween)
	}
	probes, reads, _, err := w.demand(t.Context(), 100, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v probes per second for %v reads", probes, reads)
	if probes > 1000 {
		t.Errorf("have %v probes per second under demand, want at most 1000", probes)
	}
}
