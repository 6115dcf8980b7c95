package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:])) }

// Exit statuses.
const (
	exitBroken = 1 // a guarantee was broken, or a control kept them all
	exitError  = 2 // the run itself could not be carried out
)

func run(args []string) int {
	if os.Getenv(envWorker) != "" {
		return workerMain(os.Stdin, os.Stdout)
	}
	o, err := parseOptions(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "torture:", err)
		return exitError
	case o.Print > 0:
		printSchedule(os.Stdout, o)
		return 0
	}
	log := io.Discard
	if o.Verbose {
		log = os.Stderr
	}
	r, err := torture(context.Background(), o, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return exitError
	}
	r.report(os.Stdout)
	if !r.ok() {
		return exitBroken
	}
	return 0
}

// printSchedule prints the kinds with their numbers and the first steps.
func printSchedule(w io.Writer, o *Options) {
	for k := range kinds {
		fmt.Fprintf(w, "kind %d: %s\n", k, k)
	}
	s := o.schedule()
	for n := range o.Print {
		st := s.Next()
		fmt.Fprintf(w, "step %d: %s\n", n+1, &st)
	}
}
