// Command ryw is what there is to run beside an application that uses gorm-ryw.
//
//	ryw doctor -primary DSN -replica DSN [-replica DSN]
//
// doctor examines servers for what the guarantee rests on, before production does:
// docs/doctor.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/internal/doctor"
)

// Exit statuses.
const (
	healthy = 0
	failed  = 1 // something breaks the guarantee, or could not be examined
	misused = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, env func(string) string, out, errs io.Writer) int {
	if len(args) == 0 || args[0] != "doctor" {
		fmt.Fprintln(errs, "usage: ryw doctor -primary DSN -replica DSN [-replica DSN] …; ryw doctor -h says more")
		return misused
	}
	o, asJSON, err := parse(args[1:], env, errs)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return healthy
	case err != nil:
		fmt.Fprintln(errs, "ryw doctor:", err)
		return misused
	}
	report, err := doctor.Run(ctx, o)
	if report == nil {
		fmt.Fprintln(errs, "ryw doctor:", err)
		return misused
	}
	write := report.WriteText
	if asJSON {
		write = report.WriteJSON
	}
	if err := errors.Join(err, write(out)); err != nil {
		fmt.Fprintln(errs, "ryw doctor:", err)
		return failed
	}
	if report.Failed() {
		return failed
	}
	return healthy
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return "" } // connection strings are not shown

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

func parse(args []string, env func(string) string, errs io.Writer) (o doctor.Options, asJSON bool, err error) {
	f := flag.NewFlagSet("ryw doctor", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.Primary, "primary", "", "the primary's connection `string`, as the application has it; env:NAME takes it from the environment, where no list of processes shows it")
	f.Var((*list)(&o.Replicas), "replica", "a replica's connection `string`; once for each")
	f.StringVar(&o.Source, "source", "", "`folder` of the application's Go code, to find pools that are opened past the library")
	f.DurationVar(&o.Timeout, "timeout", doctor.DefaultTimeout, "bound of each step with a server")
	f.DurationVar(&o.Wait, "wait", doctor.DefaultWait, "how long a write is followed to a replica")
	f.IntVar(&o.Connections, "connections", doctor.DefaultConnections, "how many connections to open to each address, to find out who answers there")
	f.BoolVar(&asJSON, "json", false, "write JSON")
	if err := f.Parse(args); err != nil {
		return o, false, err
	}
	for _, dsn := range append([]*string{&o.Primary}, each(o.Replicas)...) {
		if name, ok := strings.CutPrefix(*dsn, "env:"); ok {
			if *dsn = env(name); *dsn == "" {
				return o, false, fmt.Errorf("environment variable %s is empty", name)
			}
		}
	}
	switch {
	case f.NArg() > 0:
		return o, false, fmt.Errorf("have %d arguments beside flags, want none", f.NArg()) // which may be connection strings
	case o.Primary == "":
		return o, false, errors.New("-primary is missing")
	case len(o.Replicas) == 0:
		return o, false, errors.New("-replica is missing: want one or more")
	}
	return o, asJSON, nil
}

func each(all []string) []*string {
	pointers := make([]*string, len(all))
	for i := range all {
		pointers[i] = &all[i]
	}
	return pointers
}
