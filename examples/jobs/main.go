// Command jobs shows a job that reads what the write that triggered it has written:
// River, with the job enqueued in the transaction of the write, workers that read
// from replicas, and replicas that are behind.
//
//	cd examples/jobs && go run .
//
// It starts its own primary and replicas.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "jobs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := openShop(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for i, lag := range []time.Duration{20 * time.Millisecond, time.Second} {
		if err := c.Replica(i).SetApplyDelay(ctx, lag); err != nil {
			return err
		}
		fmt.Printf("replica %s:%d is %s behind\n", c.Replica(i).Host(), c.Replica(i).Port(), lag)
	}
	for i := range 5 {
		o := Order{Item: fmt.Sprint("book ", i+1)}
		if err := s.place(ctx, &o, true); err != nil {
			return err
		}
		select {
		case w := <-s.worked:
			fmt.Printf("job %d: order %q, read from %s (%s)\n", i+1, w.item, w.node, w.why)
			if w.item != o.Item {
				return fmt.Errorf("the job saw %q, want %q", w.item, o.Item)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
