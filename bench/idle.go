package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"gorm.io/gorm"
)

// idling counts how often one process asks each replica, and the primary, for its
// position while nobody reads or writes.
//
// probe.per_second_idle is of the replica that was asked most.
func idling(ctx context.Context, e *env, r *report) error {
	p, err := e.idle(ctx, 12*time.Second)
	if err != nil {
		return err
	}
	r.figure("probe.per_second_idle", p.replica, "1/s")
	r.figure("probe.per_second_idle.primary", p.primary, "1/s")
	return nil
}

// probes are per second.
type probes struct{ replica, primary float64 }

func (e *env) idle(ctx context.Context, d time.Duration) (p probes, err error) {
	at := addresses{primary: e.cluster.Primary().DSN()}
	var taps []*tap
	defer func() {
		for _, t := range taps {
			err = errors.Join(err, t.Close())
		}
	}()
	for _, s := range e.cluster.Replicas() {
		t, err := newTap(s, 0)
		if err != nil {
			return p, err
		}
		taps = append(taps, t)
		at.replicas = append(at.replicas, t.dsn)
	}
	a, err := openPlugin(ctx, at, gorm.Config{}, rywplugin.Config{})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return a.countProbes(ctx, taps, d)
}

func (a *app) countProbes(ctx context.Context, taps []*tap, d time.Duration) (p probes, err error) {
	primary, replicas := a.primary().Queries, a.replicas()
	onWire := make([]int64, len(taps))
	for i, t := range taps {
		onWire[i] = t.questions.Load()
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return p, context.Cause(ctx)
	}
	p.primary = float64(a.primary().Queries-primary) / d.Seconds()
	for i, n := range a.replicas() {
		counted, seen := n.Queries-replicas[i].Queries, taps[i].questions.Load()-onWire[i]
		if diff := counted - seen; diff < -1 || diff > 1 { // one may be on its way
			return p, fmt.Errorf("probes of %s: the library counts %d, on the wire there were %d", n.Name, counted, seen)
		}
		p.replica = max(p.replica, float64(seen)/d.Seconds())
	}
	return p, nil
}
