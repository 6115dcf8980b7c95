package main

import (
	"context"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
)

// scenario is what happens to the servers while routers are under load.
type scenario struct {
	name, title string

	period time.Duration             // a run lasts a multiple of it; 0 for any time
	load   func(o *workload.Options) // changes the usual load; nil for none
	begin  func(ctx context.Context, s *site) error
	during func(ctx context.Context, s *site, lasting time.Duration) error // until ctx ends
	end    func(ctx context.Context, s *site) error                        // as it was before
}

var scenarios = []scenario{
	{name: "lan", title: "LAN"},
	{
		name: "lag_20ms", title: "about 20 ms of lag",
		begin: func(_ context.Context, s *site) error { s.lag(20 * time.Millisecond); return nil },
		end:   func(_ context.Context, s *site) error { s.lag(0); return nil },
	},
	{
		name: "one_pausing", title: "one replica pausing 800 ms of every 3 s", period: 3 * time.Second,
		during: func(ctx context.Context, s *site, _ time.Duration) error {
			return pausing(ctx, 3*time.Second, 800*time.Millisecond, s.Replica(0))
		},
		end: resume,
	},
	{
		name: "both_pausing", title: "both pausing 2 s of every 6 s", period: 6 * time.Second,
		during: func(ctx context.Context, s *site, _ time.Duration) error {
			return pausing(ctx, 6*time.Second, 2*time.Second, s.Replicas()...)
		},
		end: resume,
	},
	{name: "one_dead", title: "one replica dead for half of the time", during: dying, end: revive},
	{
		name: "async_commit", title: "asynchronous commit",
		begin: func(ctx context.Context, s *site) error { return s.set(ctx, "synchronous_commit = off") },
		end:   func(ctx context.Context, s *site) error { return s.set(ctx, "synchronous_commit = on") },
	},
	{
		name: "rare_writes", title: "LAN with a write every 3 s", period: 3 * time.Second,
		load: func(o *workload.Options) { o.WriteEvery = 3 * time.Second },
	},
	{
		name: "floors", title: "LAN, 50 % of reads on other sessions' keys, 2 keys each",
		load: func(o *workload.Options) { o.Elsewhere, o.Keys = 0.5, 2 },
	},
	{
		name: "floors_pausing", title: "the same with one replica pausing 800 ms of every 3 s", period: 3 * time.Second,
		load: func(o *workload.Options) { o.Elsewhere, o.Keys = 0.5, 2 },
		during: func(ctx context.Context, s *site, _ time.Duration) error {
			return pausing(ctx, 3*time.Second, 800*time.Millisecond, s.Replica(0))
		},
		end: resume,
	},
}

// sessions is how many sessions there are in every scenario.
const sessions = 16

// usual is the load of a scenario that says nothing else.
func usual() workload.Options {
	return workload.Options{
		Sessions: sessions, Operations: 1 << 40, Keys: 4,
		Writes: 0.1, Elsewhere: 0.2, JustWritten: true, Think: 5 * time.Millisecond,
		Seed: 7,
	}
}

// lasting is d rounded up to whole periods.
func (sc scenario) lasting(d time.Duration) time.Duration {
	if sc.period == 0 {
		return d
	}
	return (d + sc.period - 1) / sc.period * sc.period
}

// options is the scenario's load.
func (sc scenario) options() workload.Options {
	o := usual()
	if sc.load != nil {
		sc.load(&o)
	}
	return o
}

// pausing stops replay on replicas in the last part of each period.
func pausing(ctx context.Context, every, length time.Duration, replicas ...*rywtest.Server) error {
	for begun := time.Now(); ; begun = begun.Add(every) {
		if !sleepUntil(ctx, begun.Add(every-length)) {
			return nil
		}
		if err := onAll(replicas, func(r *rywtest.Server) error { return r.PauseReplay(ctx) }); err != nil {
			return err
		}
		if !sleepUntil(ctx, begun.Add(every)) {
			return nil
		}
		if err := onAll(replicas, func(r *rywtest.Server) error { return r.ResumeReplay(ctx) }); err != nil {
			return err
		}
	}
}

// dying kills a replica after a quarter of the time and starts it after another half.
func dying(ctx context.Context, s *site, lasting time.Duration) error {
	begun := time.Now()
	if !sleepUntil(ctx, begun.Add(lasting/4)) {
		return nil
	}
	if err := s.Replica(0).Kill(ctx); err != nil {
		return err
	}
	if !sleepUntil(ctx, begun.Add(3*lasting/4)) {
		return nil
	}
	return s.Replica(0).Start(ctx)
}

func resume(ctx context.Context, s *site) error {
	return onAll(s.Replicas(), func(r *rywtest.Server) error { return r.ResumeReplay(ctx) })
}

func revive(ctx context.Context, s *site) error {
	return onAll(s.Replicas(), func(r *rywtest.Server) error {
		if r.Running() {
			return nil
		}
		return r.Start(ctx)
	})
}

// set changes a setting of the primary, for connections to come.
func (s *site) set(ctx context.Context, setting string) error {
	return s.exec(ctx, s.Primary(), "alter system set "+setting, "select pg_reload_conf()")
}

// onAll does the same to several servers at the same time.
func onAll(servers []*rywtest.Server, do func(*rywtest.Server) error) error {
	errs := make(chan error, len(servers))
	for _, s := range servers {
		go func() { errs <- do(s) }()
	}
	var first error
	for range servers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// sleepUntil returns false if ctx ended before.
func sleepUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
