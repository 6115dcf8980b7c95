package backend

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run is one run of a server or program. A nil Run is one that never began, and
// counts as ended.
type Run struct {
	done chan struct{} // closed when it has ended and err is set
	err  error
}

// NewRun has a goroutine of owner wait for the end of what was just started.
func NewRun(owner *sync.WaitGroup, wait func() error) *Run {
	r := &Run{done: make(chan struct{})}
	owner.Go(func() {
		r.err = wait()
		close(r.done)
	})
	return r
}

var ended = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done returns a channel that is closed when the run has ended.
func (r *Run) Done() <-chan struct{} {
	if r == nil {
		return ended
	}
	return r.done
}

// Ended reports whether the run has ended.
func (r *Run) Ended() bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

// Err waits for the end of a run that began, and returns how it ended.
func (r *Run) Err() error {
	<-r.done
	return r.err
}

// Await waits for the end of a server, or says that it has not come.
func (r *Run) Await(ctx context.Context) error {
	select {
	case <-r.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server has not ended: %w", context.Cause(ctx))
	}
}

// Pause waits a while, or returns why the context ended before.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
