package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
)

// warmUp is before what is measured: connections are opened then.
const warmUp = time.Second

// trial is one router in one scenario.
type trial struct {
	site     *site
	scenario scenario
	truth    *truth
	router   router

	ops     [sessions][]workload.Done // by session, in order
	from    time.Time                 // what began before is not measured
	lasting time.Duration
	sent    []sent // to each server meanwhile, the primary first
	history history.History
}

// try has a contender go through a scenario.
func (s *site) try(ctx context.Context, sc scenario, c contender, lasting time.Duration) (_ *outcome, err error) {
	t := &trial{site: s, scenario: sc, lasting: sc.lasting(lasting)}
	o := sc.options()
	o.Lasting = warmUp + t.lasting
	o.Each = func(d workload.Done) {
		t.ops[d.Session] = append(t.ops[d.Session], d)
		if d.Write {
			t.truth.logs[0].look() // soon after
		}
	}
	if o.FirstKey, err = s.rows(ctx, o.Sessions*o.Keys); err != nil {
		return nil, err
	}
	if sc.begin != nil {
		if err := sc.begin(ctx, s); err != nil {
			return nil, err
		}
	}
	t.truth = watchTruth(s.servers)
	if t.router, err = c.open(ctx, s, t.truth); err == nil {
		err = errors.Join(t.run(ctx, o), t.router.close())
	}
	t.truth.close()
	if sc.end != nil {
		err = errors.Join(err, sc.end(ctx, s))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", sc.name, c.name, err)
	}
	return t.judge(), s.WaitReplicated(ctx)
}

// run loads the router while things happen to the servers.
func (t *trial) run(ctx context.Context, o workload.Options) error {
	t.from = time.Now().Add(warmUp)
	happening, stop := context.WithCancel(ctx)
	happened := make(chan error, 1)
	var before []sent
	go func() {
		if !sleepUntil(happening, t.from) {
			happened <- nil
			return
		}
		before = t.site.traffic()
		if t.scenario.during == nil {
			happened <- nil
			return
		}
		happened <- t.scenario.during(happening, t.site, t.lasting)
	}()
	var err error
	t.history, _, err = workload.Run(ctx, t.router, o)
	after := t.site.traffic()
	stop()
	if e := <-happened; e != nil && !errors.Is(e, context.Canceled) {
		return e
	}
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx)) // errors of reads are counted otherwise
	}
	for i := range after {
		t.sent = append(t.sent, after[i].minus(before[i]))
	}
	return nil
}
