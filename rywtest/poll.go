package rywtest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How often the kit looks whether something has happened: often where looking is a
// query on an open connection, seldom where it takes a connection of its own.
const (
	often  = time.Millisecond
	seldom = 8 * time.Millisecond
)

// poll asks until the answer is yes or an error, or the context ends; have then
// tells what was there instead.
func poll(ctx context.Context, every time.Duration, f func() (bool, error), have func() string) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := f()
		if ctx.Err() != nil && !ok {
			return timedOut(ctx, have)
		}
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// timedOut is the context's error with what was there instead.
func timedOut(ctx context.Context, have func() string) error {
	cause := context.Cause(ctx)
	if err := ctx.Err(); !errors.Is(cause, err) {
		cause = fmt.Errorf("%w (%w)", cause, err)
	}
	return fmt.Errorf("%w: %s", cause, have())
}
