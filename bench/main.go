// Command bench measures what the library costs, on a real primary and two real
// replicas that it starts itself, and prints one line for each figure:
//
//	figure NAME VALUE UNIT
//
// Run it from the repository's root:
//
//	go run ./bench
//	go run ./bench -scenarios [-only lan,both_pausing] [-routers oracle,ryw] [-seconds 10] [-rounds 3]
//
// The second compares ways to choose a replica under load, in LANs with faults.
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
	do := run
	if o, yes := parseFlags(); yes {
		do = func(ctx context.Context) error { return runScenarios(ctx, &report{w: os.Stdout}, o) }
	}
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parseFlags reports whether scenarios are wanted.
func parseFlags() (o scenarioOptions, yes bool) {
	flag.BoolVar(&yes, "scenarios", false, "compare routers in scenarios instead of measuring costs")
	only := flag.String("only", "", "scenarios, by comma; all if empty")
	routers := flag.String("routers", "", "routers, by comma; all if empty")
	seconds := flag.Float64("seconds", 10, "how long each router is under load, at least")
	flag.IntVar(&o.rounds, "rounds", 1, "how often dbresolver, the oracle and the library run, by turns")
	flag.Parse()
	o.only, o.routers = names(*only), names(*routers)
	o.lasting = time.Duration(*seconds * float64(time.Second))
	return o, yes
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
