package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
)

// async decides in a goroutine of the test.
func (r *rig) async(ctx context.Context, q *Request) <-chan Decision {
	result := make(chan Decision, 1)
	go func() { result <- r.router.Decide(ctx, q) }()
	return result
}

func TestWaitEndsWhenAReplicaHasCaughtUp(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800, 850)
	result := r.async(context.Background(), r.read(wrote(900)))
	r.servers[1].WaitQueries(3) // it is asked again and again
	r.servers[1].Set(func(st *fakepg.State) { st.LSN = 900 })
	d := <-result
	r.want(d, 1, Awaited)
	if d.Want != at(1, 900) || d.Have != at(1, 900) || d.Waited <= 0 || d.Waited > patience/2 {
		t.Errorf("have want %s, have %s after %s", d.Want, d.Have, d.Waited)
	}
	if d.Incarnation != r.node(1).State().Incarnation {
		t.Error("not the life that was relied on")
	}
}

// It is the publication that ends the wait, not the next look.
func TestWaitIsWokenByThePublication(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800)
	hold := r.servers[0].Hold() // the prober gets no answer
	result := r.async(context.Background(), r.read(wrote(900)))
	hold.Arrived()
	st := *r.node(0).State()
	st.Position.LSN, st.Begun = 900, later()
	r.node(0).Publish(st.Sample)
	r.want(<-result, 0, Awaited)
	hold.Release()
}

func TestWaitEndsWithItsBudget(t *testing.T) {
	const budget = 30 * time.Millisecond
	r := newRig(t, Settings{Wait: budget}, 800, 850, 840, 890)
	r.servers[3].Set(func(st *fakepg.State) { st.Pooled = true })
	r.ask(r.node(3)) // nearer, but nothing that counts
	began := time.Now()
	d := r.decide(r.read(wrote(900)))
	r.want(d, -1, Behind)
	if took := time.Since(began); took < budget || d.Waited < budget {
		t.Errorf("ended after %s, waited %s, want %s", took, d.Waited, budget)
	}
	if d.Want != at(1, 900) || d.Have != at(1, 850) || d.Gap() != 50 || d.Age <= 0 {
		t.Errorf("have want %s, have %s, gap %d, age %s, want the nearest replica", d.Want, d.Have, d.Gap(), d.Age)
	}
}

func TestNoWaitSaysHaveAndWant(t *testing.T) {
	r := newRig(t, Settings{}, 800, 850)
	d := r.decide(r.read(wrote(900)))
	r.want(d, -1, Behind)
	if d.Want != at(1, 900) || d.Have != at(1, 850) || d.Waited != 0 {
		t.Errorf("have want %s, have %s after %s", d.Want, d.Have, d.Waited)
	}
}

// A caller with a long deadline does not wait longer, one that has gone not at all.
func TestWaitEndsWithItsContext(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800)
	ctx, cancel := context.WithCancelCause(context.Background())
	result := r.async(ctx, r.read(wrote(900)))
	r.servers[0].WaitQueries(3)
	cancel(errors.New("gone"))
	d := <-result
	r.want(d, -1, Canceled)
	if d.Waited <= 0 || d.Waited > patience/2 {
		t.Errorf("waited %s", d.Waited)
	}
}

func TestWaitProbesOnlyWhatMayServe(t *testing.T) {
	r := newRig(t, Settings{Wait: 30 * time.Millisecond}, 800, 800, 800)
	r.servers[1].Set(func(st *fakepg.State) { st.Pooled = true })
	r.ask(r.node(1))
	q := r.read(wrote(900))
	q.Exclude = r.set.Replicas[2]
	before := r.queries()
	r.want(r.decide(q), -1, Behind)
	after := r.queries()
	if after[1] <= before[1]+1 {
		t.Errorf("queries of the one that is waited for: have %d", after[1]-before[1])
	}
	if after[2] != before[2] || after[3] != before[3] || after[0] != before[0] {
		t.Errorf("queries: have %v, then %v, want none of the others", before, after)
	}
}

func TestNodeThatFailsWhileWaitedFor(t *testing.T) {
	r := newRig(t, Settings{Wait: 100 * time.Millisecond}, 800)
	result := r.async(context.Background(), r.read(wrote(900)))
	r.servers[0].WaitQueries(3)
	r.servers[0].Refuse(true)
	r.servers[0].Drop()
	d := <-result
	r.want(d, -1, NoneHealthy)
	if !d.Have.IsZero() {
		t.Errorf("have %s of a node that is gone", d.Have)
	}
}

// A restarted standby serves again once it is back where it was.
func TestWaitOverARestart(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800)
	result := r.async(context.Background(), r.read(wrote(900)))
	r.servers[0].WaitQueries(3)
	r.servers[0].Crash(func(st *fakepg.State) { st.LSN = 500 })
	r.until("the new life", func() bool { return r.node(0).State().Position.LSN == 500 })
	r.servers[0].Set(func(st *fakepg.State) { st.LSN = 950 })
	d := <-result
	r.want(d, 0, Awaited)
	if d.Have != at(1, 950) {
		t.Errorf("have %s", d.Have)
	}
}
