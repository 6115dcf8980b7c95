package policy

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// fallBack has a read fall back, which is under way until the request is ended.
func (r *rig) fallBack() *Request {
	r.t.Helper()
	q := r.read(wrote(5000))
	r.want(r.decide(q), -1, Behind)
	r.t.Cleanup(q.End) // which keeps it from the collector
	return q
}

func (r *rig) wantOverloaded(d Decision, parts ...string) {
	r.t.Helper()
	r.want(d, -1, Overloaded)
	if !errors.Is(d.Err, ErrOverloaded) {
		r.t.Fatalf("have %v, want ErrOverloaded", d.Err)
	}
	for _, part := range parts {
		if !strings.Contains(d.Err.Error(), part) {
			r.t.Errorf("have %q, want it to say %q", d.Err, part)
		}
	}
}

func TestNothingIsCappedByDefault(t *testing.T) {
	r := newRig(t, Settings{}, 800)
	for range 100 {
		r.fallBack()
	}
	f := r.router.Stats(r.group)
	if f.TokenReads != 100 || f.Fallbacks[Behind] != 100 || f.Overloaded != 0 || f.FallingBack != 0 {
		t.Errorf("have %+v", f)
	}
}

func TestConcurrencyCap(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 2}}, 850)
	first := r.fallBack()
	r.fallBack()
	r.wantOverloaded(r.decide(r.read(wrote(900))),
		"3 would be under way, want 2 at most", "replicas are behind", "at 1:0/352, want 1:0/384", "no fallback wait")
	first.End()
	first.End()
	r.fallBack()
	r.wantOverloaded(r.decide(r.read(wrote(900))))
	f := r.router.Stats(r.group)
	if f.Fallbacks[Behind] != 3 || f.Overloaded != 2 || f.FallingBack != 2 || f.TokenReads != 5 {
		t.Errorf("have %+v", f)
	}
}

func TestRateCap(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Rate: 0.001, Burst: 2}}, 850)
	r.fallBack()
	r.fallBack()
	r.wantOverloaded(r.decide(r.read(wrote(900))), "0.001 at most")
}

func TestRateOverTime(t *testing.T) {
	g := (&Pools{}).governor(nil)
	f := Fallback{Rate: 10, Burst: 3}
	began := mono.Now()
	granted := func(at time.Duration) (n int) {
		for {
			_, refused := g.take(&f, began.Add(at))
			if refused == nil {
				n++
				continue
			}
			if refused.retry <= 0 || refused.retry > 100*time.Millisecond+1 {
				t.Errorf("at %s: retry in %s", at, refused.retry)
			}
			return n
		}
	}
	for _, step := range []struct {
		at   time.Duration
		want int
	}{
		{0, 3},
		{50 * time.Millisecond, 0},
		{100 * time.Millisecond, 1},
		{20 * time.Millisecond, 0}, // a clock reading that comes late
		{350 * time.Millisecond, 2},
		{time.Hour, 3},
	} {
		if have := granted(step.at); have != step.want {
			t.Errorf("at %s: have %d, want %d", step.at, have, step.want)
		}
	}
	if have := (&Fallback{Rate: 0.5}).burst(); have != 1 {
		t.Errorf("burst of a slow rate: have %g, want 1", have)
	}
}

// What is meant for the primary is never spared it.
func TestWhatIsNeverGoverned(t *testing.T) {
	s := Settings{Window: time.Hour, Fallback: Fallback{Concurrent: 1}}
	r := newRig(t, s, 850)
	r.fallBack()
	strong := r.read(wrote(900))
	strong.Level = Strong
	r.want(r.decide(strong), -1, ByStrong)
	writing := wrote(900)
	writing.BeginWrite()
	r.want(r.decide(r.read(writing)), -1, InWrite)
	r.want(r.decide(r.read(wroteAgo(900, time.Second))), -1, InWindow)
	r.want(r.decide(&Request{Level: ReadYourWrites}), -1, NoReplicas)
	s.Mode = PrimaryOnly
	r.router.Use(s)
	r.want(r.decide(r.read(wrote(900))), -1, ByMode)
	if f := r.router.Stats(r.group); f.Fallbacks[Behind] != 1 || len(f.OtherFallbacks) != 0 || f.Overloaded != 0 {
		t.Errorf("have %+v", f)
	}
}

func TestGovernedWithoutToken(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Stale: true}}, 850)
	r.kill(r.servers[0], r.node(0))
	stale := func() *Request { return &Request{Set: r.set, Level: StaleOK} }
	r.want(r.decide(stale()), -1, NoneHealthy)
	r.wantOverloaded(r.decide(stale()), "no healthy replica")
	if f := r.router.Stats(r.group); f.OtherFallbacks[NoneHealthy] != 1 || f.TokenReads != 0 {
		t.Errorf("have %+v", f)
	}
}

func TestBoundedStalenessIsGoverned(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Stale: true}}, 850)
	bounded := func() *Request { return &Request{Set: r.set, Level: StaleOK, MaxStaleness: time.Nanosecond} }
	r.want(r.decide(bounded()), -1, Behind)
	d := r.decide(bounded())
	r.want(d, 0, ServedStale)
	if !d.Stale || d.Gap() != 150 {
		t.Errorf("have stale %v, gap %d", d.Stale, d.Gap())
	}
}

func TestServedStale(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Stale: true, Wait: 20 * time.Millisecond}}, 850)
	r.fallBack()
	s := wrote(900)
	before := s.Token()
	d := r.decide(r.read(s))
	r.want(d, 0, ServedStale)
	if !d.Stale || d.Err != nil || d.Want != at(1, 900) || d.Have != at(1, 850) || d.Gap() != 50 || d.Waited < 20*time.Millisecond {
		t.Errorf("have %+v", d)
	}
	if !s.Token().Equal(before) {
		t.Error("what the session must see has changed")
	}
	if f := r.router.Stats(r.group); f.ServedStale != 1 || f.Overloaded != 0 {
		t.Errorf("have %+v", f)
	}
	r.kill(r.servers[0], r.node(0))
	r.wantOverloaded(r.decide(r.read(s)), "fallback wait of 20ms passed")
}

// A read above the cap waits for a replica, which is asked without pause meanwhile.
func TestFallbackWaitEndsWithAReplica(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Wait: patience}}, 850)
	r.fallBack()
	result := r.async(context.Background(), r.read(wrote(900)))
	r.servers[0].WaitQueries(3)
	r.servers[0].Set(func(st *fakepg.State) { st.LSN = 900 })
	d := <-result
	r.want(d, 0, Awaited)
	if d.Waited <= 0 || d.Have != at(1, 900) {
		t.Errorf("have %s after %s", d.Have, d.Waited)
	}
}

func TestFallbackWaitEndsWithAHealthyReplica(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Wait: patience}}, 850)
	r.kill(r.servers[0], r.node(0))
	r.want(r.decide(&Request{Set: r.set, Level: StaleOK}), -1, NoneHealthy)
	result := r.async(context.Background(), &Request{Set: r.set, Level: StaleOK})
	r.servers[0].Refuse(false)
	for !r.node(0).State().Healthy {
		_, _ = r.node(0).Sample(context.Background())
	}
	r.want(<-result, 0, Anywhere)
}

func TestFallbackWaitEndsWithItsTurn(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Wait: patience}}, 850)
	first := r.fallBack()
	second, third := r.read(wrote(900)), r.read(wrote(900))
	results := []<-chan Decision{r.async(context.Background(), second), r.async(context.Background(), third)}
	r.until("somebody in front", func() bool { return len(r.set.governor.front) == 1 })
	first.End()
	next := func() (*Request, Decision) {
		select {
		case d := <-results[0]:
			return second, d
		case d := <-results[1]:
			return third, d
		}
	}
	var waited time.Duration
	for range 2 {
		q, d := next()
		r.want(d, -1, Behind)
		waited += d.Waited
		q.End()
	}
	if waited <= 0 {
		t.Error("nobody waited")
	}
}

func TestFallbackWaitEndsWithItsContext(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Stale: true, Wait: patience}}, 850)
	r.fallBack()
	ctx, cancel := context.WithCancelCause(context.Background())
	result := r.async(ctx, r.read(wrote(900)))
	r.servers[0].WaitQueries(3)
	gone := errors.New("gone")
	cancel(gone)
	d := <-result
	r.wantOverloaded(d)
	if !errors.Is(d.Err, gone) {
		t.Errorf("have %v, want the cause", d.Err)
	}
}

// However many readers there are, no more than the cap are under way, and each that
// waits long enough has its turn.
func TestManyReadersTakeTurns(t *testing.T) {
	const most = 3
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: most, Wait: patience}}, 850)
	var now, worst atomic.Int64
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			q := r.read(wrote(900))
			if d := r.decide(q); d.Reason != Behind {
				t.Errorf("have %s: %v", r.show(d), d.Err)
			}
			n := now.Add(1)
			for w := worst.Load(); n > w && !worst.CompareAndSwap(w, n); w = worst.Load() {
			}
			runtime.Gosched()
			now.Add(-1)
			q.Reset()
		})
	}
	all.Wait()
	if have := worst.Load(); have > most || have == 0 {
		t.Errorf("have %d under way at a time, want %d at most", have, most)
	}
	if f := r.router.Stats(r.group); f.FallingBack != 0 || f.Fallbacks[Behind] != 60 {
		t.Errorf("have %+v", f)
	}
}

// A read that nobody ends, as after a panic, does not keep its place for ever.
func TestAbandonedReadIsEndedByTheCollector(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1}}, 850)
	r.want(r.decide(r.read(wrote(900))), -1, Behind) // and forgotten
	limit := time.Now().Add(patience)
	for r.router.Stats(r.group).FallingBack > 0 {
		if time.Now().After(limit) {
			t.Fatal("still under way")
		}
		runtime.GC()
		runtime.Gosched()
	}
	r.fallBack()
}

func TestHandedOverRead(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1}}, 850)
	q := r.fallBack()
	if !q.Counts() {
		t.Fatal("not counted")
	}
	end := q.Hand()
	q.Reset()
	if have := r.router.Stats(r.group).FallingBack; have != 1 {
		t.Errorf("have %d, want it under way", have)
	}
	end()
	end()
	if have := r.router.Stats(r.group).FallingBack; have != 0 {
		t.Errorf("have %d, want none", have)
	}
	q.Hand()() // of nothing
}

// Each primary has caps of its own, whatever the number of its sets.
func TestGovernorIsOfThePrimary(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1}}, 850)
	other := r.router.Pools.AddSet(r.group, r.set.Replicas)
	r.fallBack()
	q := r.read(wrote(900))
	q.Set = other
	r.wantOverloaded(r.decide(q))
}

// A read that is decided again, as after the primary has failed, does not stand in its
// own way.
func TestAReadHasOnePlace(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1}}, 850)
	q := r.fallBack()
	r.want(r.decide(q), -1, Behind)
	if have := r.router.Stats(r.group).FallingBack; have != 1 {
		t.Errorf("have %d under way, want 1", have)
	}
}

// When replicas have failed one after the other, none of them is tried once more.
func TestFallBackWithoutReplicas(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1, Stale: true, Wait: 20 * time.Millisecond}}, 950, 850)
	r.fallBack()
	q := r.read(wrote(900))
	q.Exclude, q.NoReplica = r.set.Replicas[1], true
	r.wantOverloaded(r.router.FallBack(context.Background(), q, ReplicaFailed), "replica failed", "wait of 20ms passed")
}

func TestFallBackAfterAFailure(t *testing.T) {
	r := newRig(t, Settings{Fallback: Fallback{Concurrent: 1}}, 950)
	q := r.read(wrote(900))
	r.want(r.decide(q), 0, CaughtUp)
	q.Exclude = r.set.Replicas[0]
	r.want(r.router.FallBack(context.Background(), q, ReplicaFailed), -1, ReplicaFailed)
	again := r.read(wrote(900))
	r.decide(again)
	again.Exclude = r.set.Replicas[0]
	d := r.router.FallBack(context.Background(), again, ReplicaFailed)
	r.wantOverloaded(d, "replica failed")
}
