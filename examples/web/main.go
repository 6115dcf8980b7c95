// Command web shows a token travelling: a browser writes through one process and
// reads through another, a job that the write triggered is worked on by a third, and
// a second service reads over gRPC, while three replicas are behind, each by more
// than the one before.
//
//	go run ./examples/web                # tells in the terminal where each read went
//	go run ./examples/web -serve :8080   # and waits for a browser at that address
//
// It starts its own primary and replicas, and itself once more for each process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c config
	f := flag.NewFlagSet("web", flag.ContinueOnError)
	serve := f.String("serve", "", "address for a browser, for example :8080")
	f.StringVar(&c.role, "role", "", "app, worker or reader: what a process is that this program started")
	f.StringVar(&c.name, "name", "", "its name")
	f.StringVar(&c.primary, "primary", "", "connection string of the primary")
	f.StringVar(&c.replicas, "replicas", "", "connection strings of the replicas, separated by |")
	f.StringVar(&c.drop, "drop", "", "a hop at which the token is dropped, for tests: app, job, worker, client or reader")
	f.StringVar(&c.reader, "reader", "", "address of the reader")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch c.role {
	case "app":
		return runApp(untilParentEnds(ctx), c)
	case "worker":
		return runWorker(untilParentEnds(ctx), c)
	case "reader":
		return runReader(untilParentEnds(ctx), c)
	}
	return demo(ctx, *serve)
}

// config is what a process is told by the one that started it.
type config struct{ role, name, primary, replicas, drop, reader string }

func (c config) args() []string {
	return []string{
		"-role", c.role, "-name", c.name, "-primary", c.primary, "-replicas", c.replicas, "-drop", c.drop, "-reader", c.reader,
	}
}

func (c config) replicaList() []string { return strings.Split(c.replicas, "|") }

// untilParentEnds returns a context that ends with standard input, which the
// parent holds open as long as it lives.
func untilParentEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with the process
		defer cancel()
		var b [1]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				return
			}
		}
	}()
	return ctx
}
