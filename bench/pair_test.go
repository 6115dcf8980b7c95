package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestContendersTakeTurns(t *testing.T) {
	var order []string
	contender := func(name string) func() error {
		return func() error { order = append(order, name); return nil }
	}
	times, err := alternate(3, 2, contender("a"), contender("b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("a a b b b b a a a a b b"); !slices.Equal(order, want) {
		t.Errorf("have %v, want %v", order, want)
	}
	if len(times) != 2 || len(times[0]) != 3 || len(times[1]) != 3 {
		t.Errorf("have %v, want three times for each of two", times)
	}
}

func TestAlternateStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	_, err := alternate(3, 2, func() error { calls++; return broken })
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("have %v after %d calls, want the error after one", err, calls)
	}
}

func TestMedian(t *testing.T) {
	values := []float64{9, 1, 5}
	if have := median(values); have != 5 || values[0] != 9 {
		t.Errorf("have %v of %v, want 5 and the values untouched", have, values)
	}
	if have := median([]float64{4, 1, 2, 9}); have != 3 {
		t.Errorf("have %v, want 3", have)
	}
}

// A machine that is twice as slow for one round slows down both.
func TestRatioIsOfTheSameRound(t *testing.T) {
	have := ratio([]float64{11, 22, 33}, []float64{10, 20, 30})
	if math.Abs(have-1.1) > 1e-9 {
		t.Errorf("have %v, want 1.1", have)
	}
}

func TestFigureLines(t *testing.T) {
	var b strings.Builder
	r := &report{w: &b}
	r.heading("Title")
	r.figure("a.b", 12.34567, "ns")
	r.figure("c", 4, "round trips")
	want := "# Title\nfigure a.b 12.346 ns\nfigure c 4 round trips\n"
	if b.String() != want {
		t.Errorf("have %q, want %q", b.String(), want)
	}
}

var kept []byte

func TestAllocationsAreCounted(t *testing.T) {
	n, err := allocations(1000, func() error { kept = make([]byte, 100); return nil })
	if err != nil || math.Abs(n-1) > 0.1 {
		t.Errorf("have %v, %v, want 1", n, err)
	}
}
