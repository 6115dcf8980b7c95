//go:build linux || darwin

package rywtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// delays are moments within a call of some hundred milliseconds.
var delays = []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// What was cut short can be done again.
func TestCancelledCallsCanBeRepeated(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	p, r := c.Primary(), c.Replica(0)
	for what, call := range map[string]func(context.Context) error{
		"Follow":  func(ctx context.Context) error { return r.Follow(ctx, p) },
		"Restart": func(ctx context.Context) error { return startAgain(ctx, r) },
		"Kill":    func(ctx context.Context) error { return killAndStart(ctx, r) },
		"pause":   func(ctx context.Context) error { return pauseAndResume(ctx, r) },
	} {
		for _, after := range delays {
			if err := call(within(t, after)); err != nil {
				wantTimeout(t, err)
			}
			if err := call(within(t, patience)); err != nil {
				t.Fatalf("%s, cut short after %v, then again: %v", what, after, err)
			}
		}
	}
	insert(t, p, 1)
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, r, "1")
}

// startAgain is Restart of a server that may have been stopped before.
func startAgain(ctx context.Context, s *rywtest.Server) error {
	if s.Running() {
		return s.Restart(ctx)
	}
	return s.Start(ctx)
}

func killAndStart(ctx context.Context, s *rywtest.Server) error {
	if s.Running() {
		if err := s.Kill(ctx); err != nil {
			return err
		}
	}
	return s.Start(ctx)
}

func pauseAndResume(ctx context.Context, s *rywtest.Server) error {
	if err := s.PauseReplay(ctx); err != nil {
		return err
	}
	return s.ResumeReplay(ctx)
}

// A replica that was not to be is none of the cluster's, and takes no place.
func TestCancelledAddReplica(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: rywtest.NoReplicas})
	for _, after := range delays {
		begin := time.Now()
		s, err := c.AddReplica(within(t, after))
		if err == nil {
			continue
		}
		wantTimeout(t, err)
		if took := time.Since(begin) - after; took > 5*time.Second && !onDocker() { // an engine may be busy
			t.Errorf("it went on for %v when the context had ended", took)
		}
		if s != nil {
			t.Errorf("have replica %s and error %v", s.Name(), err)
		}
	}
	before := len(c.Replicas())
	_, err := c.AddReplica(within(t, patience))
	must(t, err)
	if have := len(c.Replicas()); have != before+1 {
		t.Errorf("have %d replicas, want %d", have, before+1)
	}
	must(t, c.WaitReplicated(within(t, patience)))
	have := text(t, c.Primary(), "select count(*) from pg_stat_replication")
	if want := text(t, c.Primary(), "select "+string(rune('0'+before+1))); have != want {
		t.Errorf("have %s programs that stream, want %s", have, want)
	}
}
