// Command quickstart shows the library at work: a real primary, two real
// replicas, writes, and reads that leave the primary without ever missing a
// write, while one replica is seconds behind. Next to it the same work runs on
// plain dbresolver.
//
//	go run ./examples/quickstart
//
// Without flags it starts its own cluster. With -primary and -replica (which may
// be repeated) it uses yours: it creates a table ryw_quickstart there and drops
// it at the end, and does not make your replicas lag.
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

func main() {
	var f flags
	flag.StringVar(&f.primary, "primary", "", "connection string of your primary; with none a cluster is started")
	flag.Var(&f.replicas, "replica", "connection string of a replica of yours; may be repeated")
	flag.DurationVar(&f.duration, "duration", 10*time.Second, "how long the load runs")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stale, err := run(ctx, f)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(2)
	case stale > 0:
		os.Exit(1)
	}
}

type flags struct {
	primary  string
	replicas stringList
	duration time.Duration
}

type stringList []string

func (l *stringList) String() string { return strings.Join(*l, " ") }

func (l *stringList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// run tells the story and returns how many reads under tokens were stale.
func run(ctx context.Context, f flags) (stale int64, err error) {
	servers, err := openServers(ctx, f)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, servers.close()) }()

	apps, err := openApps(ctx, servers)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, apps.close()) }()

	fmt.Printf("Primary %s\n", servers.names[0])
	for _, r := range servers.names[1:] {
		fmt.Printf("Replica %s\n", r)
	}
	one, err := apps.showOne(ctx)
	if err != nil {
		return 0, err
	}
	fmt.Printf("\nOne write and reads of it:\n%s\n", one)

	t := newTally()
	half := f.duration / 2
	fmt.Printf("%s of load with every replica keeping up …\n", half)
	if err := apps.load(ctx, t, half); err != nil {
		return 0, err
	}
	if err := servers.lag(ctx); err != nil {
		return 0, err
	}
	if servers.cluster != nil {
		fmt.Printf("%s of load with replica %s %s behind …\n", half, servers.names[len(servers.names)-1], behind)
	}
	if err := apps.load(ctx, t, half); err != nil {
		return 0, err
	}
	if err := servers.checkLag(ctx); err != nil {
		return 0, err
	}
	fmt.Println()
	t.print(os.Stdout)
	return t.stale(), nil
}
