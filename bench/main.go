// Command bench measures what the library costs, on a real primary and two real
// replicas that it starts itself, and prints one line for each figure:
//
//	figure NAME VALUE UNIT
//
// Run it from the repository's root:
//
//	go run ./bench
//
// Figures are counts, or times of two things done by turns in the same run and
// their ratio; RESULTS.md says what they mean. Each group stands in a file of its
// own and is listed in groups.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// group is some figures that are measured together.
type group struct {
	title string
	run   func(context.Context, *env, *report) error
}

var groups = []group{
	{"Routing a read under a token, two caught-up replicas, nothing sent", routing},
	{"A whole First by primary key, loopback without delay", reading},
	{"A Create in a transaction of its own, counted on the wire", writing},
	{"Whole writes by turns, 0.5 ms of network each way", delayedWriting},
	{"32 writers, 0.5 ms of network each way", capturing},
	{"Nobody asks anything", idling},
	{"Token of one cluster", tokens},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	e, err := newEnv(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	about, err := e.about(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, about)
	r := &report{w: os.Stdout}
	for _, g := range groups {
		r.heading(g.title)
		if err := g.run(ctx, e, r); err != nil {
			return fmt.Errorf("%s: %w", g.title, err)
		}
	}
	return nil
}
