package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// calmTime is for how long the workers go on after the last fault: whatever was
// left broken by the faults shows then.
const calmTime = 2 * time.Second

// torture runs what the options say and returns what came out.
func torture(ctx context.Context, o *Options, log io.Writer) (r *outcome, err error) {
	orders := assign(o)
	all, ofStandbys := o.settings()
	s, err := openSite(ctx, keysOf(orders), all, ofStandbys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := range orders {
		orders[i].Primary, orders[i].Replicas = s.primaryDSN(orders[i].Endpoint), s.replicaDSNs()
	}
	return drive(ctx, o, s, orders, log)
}

// drive has the workers work and the director disturb them.
func drive(ctx context.Context, o *Options, s *site, orders []Orders, log io.Writer) (*outcome, error) {
	d := &director{site: s, rec: history.NewRecorder("director"), log: log, only: o.Only}
	for key := int64(1); key <= keysOf(orders); key++ {
		_ = d.rec.Initial(keyName(key), 0) // the first declaration cannot contradict
	}
	watching, stopWatching := context.WithCancel(ctx)
	w := newWitness(watching, d.rec, s)
	defer func() { stopWatching(); w.join() }()

	working, giveUp := context.WithCancelCause(ctx)
	defer d.join()
	defer giveUp(nil)
	c, err := startCrew(ctx, orders, giveUp)
	if err != nil {
		if c != nil {
			c.abandon()
		}
		return nil, err
	}
	d.crew = c
	if err := d.disturb(working, o); err != nil {
		c.kill()
		return nil, errors.Join(err, c.stop())
	}
	if err := c.stop(); err != nil {
		return nil, err
	}
	stopWatching()
	w.join()
	return newOutcome(o, d, w, c)
}

// disturb carries out the schedule, brings everything back, and leaves the workers
// some time in peace.
func (d *director) disturb(ctx context.Context, o *Options) error {
	until := time.Now().Add(o.Duration)
	more := func() bool { return time.Now().Before(until) }
	if o.Crashes > 0 {
		more = func() bool { return len(d.crashes) < o.Crashes }
	}
	if err := d.run(ctx, o.schedule(), more); err != nil {
		return err
	}
	if err := d.calm(ctx); err != nil {
		return err
	}
	pause(ctx, calmTime)
	return context.Cause(ctx)
}

// assign says what each worker is.
func assign(o *Options) []Orders {
	list := make([]Orders, o.Procs)
	byRole := map[string][]int{}
	for i := range list {
		role := roles[i%len(roles)]
		byRole[role] = append(byRole[role], i)
		half := i / len(roles) % 2 // every role has both halves
		list[i] = Orders{
			Index: i, Role: role, Mode: o.Mode, Seed: o.Seed, Prepare: i%4 == 1, Strict: o.Strict, Probe: o.Probe,
			Name:     fmt.Sprintf("%s-%d", role, i),
			Road:     choose(o.Road, roadBoth, half == 0, roadPostgres, roadRYWPGX),
			Endpoint: choose(o.Endpoint, endpointBoth, i%2 == 0, endpointMoving, endpointHosts),
			FirstKey: int64(1 + i*threads*keysPerThread),
		}
		if o.Crashes > 0 {
			list[i].Eager, list[i].Tell, list[i].Connections = role == roleReader, true, fewConnections
		}
	}
	for i := range list {
		list[i].AllKeys = keysOf(list)
		list[i].Writers, list[i].Readers, list[i].Jobs = byRole[roleWriter], byRole[roleReader], byRole[roleJob]
	}
	return list
}

func choose(have, both string, first bool, a, b string) string {
	switch {
	case have != both:
		return have
	case first:
		return a
	}
	return b
}

func keysOf(all []Orders) int64 { return int64(len(all) * threads * keysPerThread) }
