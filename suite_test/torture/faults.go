package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// stepTimeout bounds one step: a server that cannot be brought back ends the run.
const stepTimeout = 3 * time.Minute

// director carries out steps, one after the other.
type director struct {
	site *site
	rec  *history.Recorder // promotions
	log  io.Writer
	only int // the only kind of fault, below 0 for all

	steps int // so far

	crew      *crew
	ctx       context.Context // of the whole run
	returning *comeback       // the last one; nil before the first failover
	survived  []survivors

	mu     sync.Mutex // protects what follows: a step may be two faults at a time
	counts [kinds]int
	spans  []span
	frozen []frozen
	splits []split
	// diverged counts the standbys that stayed behind a promotion with something
	// that the new primary lacks.
	diverged int

	crashes []crash // of -crashes
}

// span is when a fault was, for those who read a violation.
type span struct {
	from, to int64 // of the history's clock
	text     string
}

// run carries out steps as long as there are to be more. What a step began it ends.
func (d *director) run(ctx context.Context, s *Schedule, more func() bool) error {
	d.ctx = ctx
	for n := 1; more() && ctx.Err() == nil; n++ {
		st := s.Next()
		if d.only >= 0 {
			if st.With = nil; int(st.Kind) != d.only {
				continue
			}
		}
		crashes := len(d.crashes)
		fmt.Fprintf(d.log, "%s step %d: %s\n", time.Now().Format("15:04:05.000"), n, &st)
		d.steps = n
		if err := d.step(ctx, &st); err != nil {
			return fmt.Errorf("step %d (%s): %w", n, &st, err)
		}
		before := d.crew.reads() // so that what comes is between two crashes
		pause(ctx, st.Gap)
		if err := d.awaitReads(ctx, before, len(d.crashes)-crashes); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (d *director) step(ctx context.Context, st *Step) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if st.Kind.failsOver() {
		return d.failover(ctx, st)
	}
	standbys := d.standbys()
	first := standbys[st.Standby%len(standbys)]
	if st.With == nil {
		return d.fault(ctx, st, first)
	}
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { err = d.fault(ctx, st.With, d.another(st.With, first)) })
	return errors.Join(d.fault(ctx, st, first), wait(&wg, &err))
}

func wait(wg *sync.WaitGroup, err *error) error {
	wg.Wait()
	return *err
}

// another returns the standby of a rider: not the one that has a fault already.
func (d *director) another(rider *Step, taken *rywtest.Server) *rywtest.Server {
	var free []*rywtest.Server
	for _, s := range d.standbys() {
		if s != taken {
			free = append(free, s)
		}
	}
	return free[rider.Standby%len(free)]
}

// fault carries out one fault, on a standby or on the primary.
func (d *director) fault(ctx context.Context, st *Step, standby *rywtest.Server) error {
	if st.Ballast > 0 {
		if err := d.ballast(ctx, st.Ballast, standby); err != nil {
			return err
		}
	}
	target := standby
	if !st.Kind.ofReplica() {
		target = d.site.Primary()
	}
	if st.Behind > 0 {
		return d.crash(ctx, st, target)
	}
	who, from := target.Name(), d.rec.Now()
	if st.Kind == FreezeWorkers {
		who = fmt.Sprintf("%d workers", st.Frozen)
	}
	err := actions[st.Kind](d, ctx, st, target)
	d.noted(st.Kind, who, from)
	return err
}

// noted counts a fault that is over.
func (d *director) noted(k Kind, server string, from int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[k]++
	d.spans = append(d.spans, span{from: from, to: d.rec.Now(), text: server + ": " + k.String()})
}

// ballast writes WAL that changes nothing, and lets some time pass: what is written
// then a standby that crashes has back only when it has replayed the ballast again.
func (d *director) ballast(ctx context.Context, mb int, standby *rywtest.Server) error {
	primary := d.site.Primary()
	err := d.site.exec(ctx, primary,
		fmt.Sprintf("select pg_logical_emit_message(false, 'torture', repeat('x', 1 << 20)) from generate_series(1, %d)", mb))
	if err != nil {
		return err
	}
	at, err := primary.Position(ctx)
	if err != nil {
		return err
	}
	defer pause(ctx, behindBallast)
	return standby.WaitCaughtUp(ctx, at)
}

// behindBallast is for how long there is writing behind the ballast.
const behindBallast = 700 * time.Millisecond

// action carries out a fault from its beginning to its end.
type action func(d *director, ctx context.Context, st *Step, s *rywtest.Server) error

var actions = [kinds]action{
	KillReplica: during(endBy((*rywtest.Server).Kill), by((*rywtest.Server).Start)),
	KillReplicaBackend: func(_ *director, ctx context.Context, _ *Step, s *rywtest.Server) error {
		return s.KillBackend(ctx)
	},
	StopReplica:    during(endBy((*rywtest.Server).StopImmediate), by((*rywtest.Server).Start)),
	RestartReplica: during(endBy((*rywtest.Server).Stop), by((*rywtest.Server).Start)),
	FreezeReplica:  during(by((*rywtest.Server).Freeze), by((*rywtest.Server).Thaw)),
	PauseReplay:    during(by((*rywtest.Server).PauseReplay), by((*rywtest.Server).ResumeReplay)),
	DelayReplay: during(func(_ *director, ctx context.Context, st *Step, s *rywtest.Server) error {
		return s.SetApplyDelay(ctx, st.Hold/3)
	}, func(_ *director, ctx context.Context, _ *Step, s *rywtest.Server) error {
		return s.SetApplyDelay(ctx, 0)
	}),
	PartitionReplica:     partition(func(d *director, s *rywtest.Server) []*proxy.Proxy { return []*proxy.Proxy{d.site.clients[s]} }),
	PartitionReplication: partition(func(d *director, s *rywtest.Server) []*proxy.Proxy { return d.site.upstreamsOf(s) }),
	SlowLinks:            during(slow(true), slow(false)),
	CutLinks: func(d *director, _ context.Context, st *Step, s *rywtest.Server) error {
		d.site.clients[s].CutAll()
		if st.Drop {
			d.site.upstreams[s].CutAll()
		}
		return nil
	},
	KillPrimary: during(by((*rywtest.Server).Kill), by((*rywtest.Server).Start)),
	KillPrimaryBackend: func(_ *director, ctx context.Context, _ *Step, s *rywtest.Server) error {
		return s.KillBackend(ctx)
	},
	FreezeWorkers: func(d *director, ctx context.Context, st *Step, _ *rywtest.Server) error {
		defer d.freeze(st.Worker, st.Frozen)()
		pause(ctx, st.Hold)
		return nil
	},
	FreezePrimary:    during(by((*rywtest.Server).Freeze), by((*rywtest.Server).Thaw)),
	PartitionPrimary: partition(func(d *director, _ *rywtest.Server) []*proxy.Proxy { return d.site.primaryLinks() }),
}

// by makes an action of a method.
func by(f func(*rywtest.Server, context.Context) error) action {
	return func(_ *director, ctx context.Context, _ *Step, s *rywtest.Server) error { return f(s, ctx) }
}

// endBy is by for what ends a server, which it cuts down to a quarter of the
// time: what is looked for comes when the server is back.
func endBy(f func(*rywtest.Server, context.Context) error) action {
	return func(_ *director, ctx context.Context, st *Step, s *rywtest.Server) error {
		st.Hold /= 4
		return f(s, ctx)
	}
}

// during begins something, holds it, and ends it.
func during(begin, end action) action {
	return func(d *director, ctx context.Context, st *Step, s *rywtest.Server) error {
		if err := begin(d, ctx, st, s); err != nil {
			return err
		}
		pause(ctx, st.Hold)
		return end(d, ctx, st, s)
	}
}

// partition lets nothing through on some links for a while.
func partition(links func(*director, *rywtest.Server) []*proxy.Proxy) action {
	return func(d *director, ctx context.Context, st *Step, s *rywtest.Server) error {
		list := links(d, s)
		for _, p := range list {
			p.Partition()
		}
		pause(ctx, st.Hold)
		for _, p := range list {
			if st.Drop {
				p.CutAll()
			}
			p.Heal()
		}
		return nil
	}
}

// slow adds latency to a standby's links, the one to the primary included.
func slow(on bool) action {
	return func(d *director, _ context.Context, st *Step, s *rywtest.Server) error {
		var d1, d2 time.Duration
		if on {
			d1, d2 = st.Hold/100, st.Hold/20
		}
		d.site.clients[s].SetDelay(d1)
		d.site.upstreams[s].SetDelay(d2)
		return nil
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
