package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// sensor is the library's own routing on one replica, without GORM around it: what
// waits is exactly what a read waits in.
type sensor struct {
	group  *watcher.Group
	router *policy.Router
	set    *policy.Set
	writer *pgx.Conn
}

// openSensor watches the servers of a site through its network. A read waits for at
// most the given time.
func (s *site) openSensor(ctx context.Context, wait time.Duration) (*sensor, error) {
	dial := func(dsn string) watcher.Dial {
		return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }
	}
	at := s.addresses(false)
	w := &sensor{
		group:  watcher.NewGroup(watcher.Config{ProbeTimeout: patience}, "primary", dial(at.primary)),
		router: policy.NewRouter(policy.Settings{Wait: wait}),
	}
	node := w.group.Add("replica", dial(at.replicas[0]), "")
	w.set = w.router.Pools.AddSet(w.group, []*policy.Replica{{Node: node}})
	var err error
	if w.writer, err = s.Primary().Conn(ctx); err != nil {
		return nil, err
	}
	for _, n := range []*watcher.Node{w.group.Primary, node, w.group.Primary, node} {
		if _, err := n.Sample(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *sensor) close(ctx context.Context) error {
	w.group.Close()
	return w.writer.Close(context.WithoutCancel(ctx))
}

func (w *sensor) replica() *watcher.Node { return w.set.Replicas[0].Node }

// write commits something and returns a session's position behind it.
func (w *sensor) write(ctx context.Context) (token.Position, error) {
	if _, err := w.writer.Exec(ctx, "update bench_rows set v = v + 1 where id = 1"); err != nil {
		return token.Position{}, err
	}
	s, err := w.group.Primary.Sample(ctx)
	return s.Position, err
}

// sessionAt is a session that has written up to a position.
func (w *sensor) sessionAt(p token.Position) *session.Session {
	s := session.New()
	s.Advance(w.group.Key(), p, mono.Now(), true)
	return s
}

// read decides where a read of a session goes, and waits as a read does.
func (w *sensor) read(ctx context.Context, s *session.Session) policy.Decision {
	q := &policy.Request{Set: w.set, Level: policy.ReadYourWrites, NoChecks: true}
	q.Honour(s)
	return w.router.Decide(ctx, q)
}

// awaited is what became of reads that all waited for the same position.
type awaited struct {
	probes        float64       // per second while nothing happened
	spread        time.Duration // between the first that woke and the last
	late          time.Duration // from the replica's being there to the last
	probesBetween int64         // questions between the first and the last: 0 is one pass
	perWaiter     float64       // bytes, its goroutine included
}

// waiting has ever more reads wait for a replica that gets nothing, and lets it go on.
func (g *growth) waiting(ctx context.Context) (err error) {
	if _, err := g.site.rows(ctx, 1); err != nil {
		return err
	}
	w, err := g.site.openSensor(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = w.close(ctx) }() // the connection was only written on
	g.figure("memory.per_session", w.bytesPerSession(), "bytes")
	wake := curve{name: "first to last, measured"}
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		a, err := g.site.waitersWoken(ctx, w, n, 2*time.Second)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("waiters.%d", n)
		g.figure(name+".probes_per_second", a.probes, "1/s")
		g.figure(name+".woken_first_to_last", ms(a.spread), "ms")
		g.figure(name+".woken_after_replica_was_there", ms(a.late), "ms")
		g.figure(name+".probes_between_first_and_last", float64(a.probesBetween), "probes")
		if n >= 1000 { // of fewer nothing can be told beside all that is in the heap
			g.figure(name+".memory_per_waiter", a.perWaiter, "bytes")
		}
		wake.add(float64(n), ms(a.spread))
	}
	g.panels = append(g.panels, panel{"Waiters woken by one answer", "waiters", "ms from first to last", []curve{wake}})
	return nil
}

// bytesPerSession is what a session with one position takes.
func (w *sensor) bytesPerSession() float64 {
	const n = 100_000
	kept := make([]*session.Session, n)
	before := heap()
	at := w.group.Primary.State().Position
	for i := range kept {
		kept[i] = w.sessionAt(at)
	}
	after := heap()
	runtime.KeepAlive(kept)
	return float64(after-before) / n
}

// heap is what is in use, stacks included.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what had finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// waitersWoken has n reads wait, counts probes for a time, and lets the replica go on.
func (s *site) waitersWoken(ctx context.Context, w *sensor, n int, hold time.Duration) (a awaited, err error) {
	truth := watchTruth(s.servers)
	defer truth.close()
	link := s.links[0]
	link.Partition()
	defer link.Heal()
	at, err := w.write(ctx)
	if err != nil {
		return a, err
	}
	ses := w.sessionAt(at)
	woken, asked := make([]time.Time, n), make([]int64, n)
	var wrong atomic.Pointer[policy.Decision]
	var all sync.WaitGroup
	before := heap()
	for i := range n {
		all.Go(func() {
			d := w.read(ctx, ses)
			woken[i] = time.Now()
			asked[i], _ = w.replica().Counters()
			if d.Replica == nil {
				wrong.Store(&d)
			}
		})
	}
	if !sleepUntil(ctx, time.Now().Add(hold/2)) { // all of them wait by then
		return a, context.Cause(ctx)
	}
	a.perWaiter = float64(heap()-before) / float64(n)
	questions, _ := w.replica().Counters()
	if !sleepUntil(ctx, time.Now().Add(hold)) {
		return a, context.Cause(ctx)
	}
	later, _ := w.replica().Counters()
	a.probes = float64(later-questions) / hold.Seconds()
	healed := time.Now()
	link.Heal()
	all.Wait()
	if d := wrong.Load(); d != nil {
		return a, fmt.Errorf("%d waiters: one went to the primary: %s", n, d.Reason)
	}
	there, _ := truth.replicas()[0].reached(uint64(at.LSN), healed)
	a.spread = slices.MaxFunc(woken, time.Time.Compare).Sub(slices.MinFunc(woken, time.Time.Compare))
	a.late = slices.MaxFunc(woken, time.Time.Compare).Sub(there)
	a.probesBetween = slices.Max(asked) - slices.Min(asked)
	return a, nil
}

// demanding has ever more readers wait for a lagging replica again and again.
func (g *growth) demanding(ctx context.Context) error {
	g.site.lag(20 * time.Millisecond)
	defer g.site.lag(0)
	if err := g.site.WaitReplicated(ctx); err != nil {
		return err
	}
	w, err := g.site.openSensor(ctx, waitCap)
	if err != nil {
		return err
	}
	defer func() { _ = w.close(ctx) }() // the connection was only written on
	probes, ratio := curve{name: "probes per second"}, curve{name: "reads per second"}
	for _, n := range []int{1, 3, 10, 30, 100, 300, 1000} {
		perSecond, reads, replica, err := w.demand(ctx, n, 3*time.Second)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("readers.%d", n)
		g.figure(name+".probes_per_second", perSecond, "1/s")
		g.figure(name+".reads_per_second", reads, "1/s")
		g.figure(name+".share", 100*replica, "%")
		probes.add(float64(n), perSecond)
		ratio.add(float64(n), reads)
	}
	g.panels = append(g.panels, panel{"Readers that wait for one replica, 20 ms behind", "readers", "per second", []curve{probes, ratio}})
	return nil
}

// demand has n readers each wait for the newest position again and again, and returns
// probes of the replica and reads per second, and the share that the replica served.
func (w *sensor) demand(ctx context.Context, n int, lasting time.Duration) (probes, perSecond, share float64, err error) {
	ctx, stop := context.WithTimeout(ctx, lasting)
	defer stop()
	var reads, served atomic.Int64
	var all sync.WaitGroup
	questions, _ := w.replica().Counters()
	began := time.Now()
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				d := w.read(ctx, w.sessionAt(w.group.Primary.State().Position))
				if d.Reason == policy.Canceled {
					return
				}
				reads.Add(1)
				if d.Replica != nil {
					served.Add(1)
				}
				if d.Waited == 0 { // a reader that need not wait has something else to do
					sleepUntil(ctx, time.Now().Add(5*time.Millisecond))
				}
			}
		})
	}
	for err == nil && sleepUntil(ctx, time.Now().Add(5*time.Millisecond)) {
		if _, err = w.write(ctx); ctx.Err() != nil {
			err = nil // the end of the run
		}
	}
	all.Wait()
	took := time.Since(began).Seconds()
	later, _ := w.replica().Counters()
	if w.writer.IsClosed() && err == nil {
		w.writer, err = pgx.Connect(context.WithoutCancel(ctx), w.writer.Config().ConnString())
	}
	return float64(later-questions) / took, float64(reads.Load()) / took, part(int(served.Load()), int(reads.Load())), err
}
