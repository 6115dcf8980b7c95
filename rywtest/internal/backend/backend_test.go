package backend

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunThatNeverBeganHasEnded(t *testing.T) {
	var r *Run
	if !r.Ended() {
		t.Error("have a run that goes on")
	}
	if err := r.Await(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestRun(t *testing.T) {
	var owner sync.WaitGroup
	end := make(chan error)
	r := NewRun(&owner, func() error { return <-end })
	cause := errors.New("patience is over")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := r.Await(ctx); r.Ended() || !errors.Is(err, cause) {
		t.Errorf("have %v and ended %v, want %v of a run that goes on", err, r.Ended(), cause)
	}
	last := errors.New("exit status 3")
	end <- last
	if err := r.Err(); !errors.Is(err, last) || !r.Ended() {
		t.Errorf("have %v and ended %v, want %v", err, r.Ended(), last)
	}
	owner.Wait()
}

func TestPauseEndsWithItsContext(t *testing.T) {
	if err := Pause(context.Background(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	cause := errors.New("closed")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := Pause(ctx, time.Hour); !errors.Is(err, cause) {
		t.Errorf("have %v, want %v", err, cause)
	}
}
