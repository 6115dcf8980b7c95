// Command bench measures what the library costs, on a real primary and two real
// replicas that it starts itself, and prints one line for each figure:
//
//	figure NAME VALUE UNIT
//
// Run it from the repository's root:
//
//	go run ./bench
//	go run ./bench -growth [-plot bench/growth.svg]
//	go run ./bench -scenarios [-only lan,both_pausing] [-routers oracle,ryw] [-seconds 10] [-rounds 3]
//
// The second measures and draws what becomes of costs as work grows, the third
// compares ways to choose a replica under load, with lag and faults.
//
// Figures are counts, or times of two things done by turns in the same run and
// their ratio; RESULTS.md says what they mean. Each group stands in a file of its
// own and is listed in groups.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
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
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context) error {
	if yes, err := obeyed(ctx); yes {
		return err
	}
	var o scenarioOptions
	scenarios := flag.Bool("scenarios", false, "compare routers in scenarios instead of measuring costs")
	only := flag.String("only", "", "scenarios, by comma; all if empty")
	routers := flag.String("routers", "", "routers, by comma; all if empty")
	seconds := flag.Float64("seconds", 10, "how long each router is under load, at least")
	flag.IntVar(&o.rounds, "rounds", 1, "how often dbresolver, the oracle and the library run, by turns")
	growing := flag.Bool("growth", false, "measure how costs grow, and draw it")
	plot := flag.String("plot", "growth.svg", "the file to draw into")
	flag.Parse()
	o.only, o.routers = names(*only), names(*routers)
	o.lasting = time.Duration(*seconds * float64(time.Second))
	switch r := (&report{w: os.Stdout}); {
	case *scenarios:
		return runScenarios(ctx, r, o)
	case *growing:
		return runGrowth(ctx, r, *plot)
	}
	return run(ctx)
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
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
