package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
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
	// It ends when there would be no time for another look.
	if took, least := time.Since(began), budget*3/4; took < least || d.Waited < least {
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

// What cannot serve within the budget is not waited for.
func TestNothingIsWaitedForThatIsNotExpected(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"paused": func(r *rig) {
			r.servers[0].Set(func(st *fakepg.State) { st.Paused = true })
			r.ask(r.node(0))
		},
		"the primary is gone": func(r *rig) {
			r.kill(r.primary, r.group.Primary)
			r.ask(r.node(0)) // whose word is no proof now
		},
		"too far behind": func(r *rig) { r.move(0, r.writing(20*time.Millisecond)) },
	} {
		r := newRig(t, Settings{Wait: 5 * time.Millisecond}, 800)
		prepare(r)
		want, asked := max(1000, r.group.Primary.State().Position.LSN), r.servers[0].Queries()
		d := r.decide(r.read(wrote(uint64(want))))
		r.want(d, -1, Behind)
		// On a slow machine what was known is too old by now, and is asked for again.
		if looks := r.servers[0].Queries() - asked; looks > 1 || looks == 0 && d.Waited != 0 {
			t.Errorf("%s: waited %s, looked %d times", name, d.Waited, looks)
		}
	}
}

// One that is expected within the budget is looked at then, not before.
func TestReplicaIsLookedAtWhenItIsExpected(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800)
	half := r.writing(40 * time.Millisecond)
	want := r.group.Primary.State().Position
	var begun, at mono.Instant
	for known := false; !known || at.Sub(begun) < time.Millisecond; { // as it is unless the machine is too slow
		r.move(0, half)
		begun = mono.Now()
		at, known = r.node(0).ExpectedAt(want, begun)
	}
	asked := r.servers[0].Queries()
	r.servers[0].Set(func(st *fakepg.State) { st.LSN = uint64(want.LSN) })
	d := r.decide(r.read(wrote(uint64(want.LSN))))
	r.want(d, 0, Awaited)
	if seen := r.node(0).State().Begun; seen < at {
		t.Errorf("looked after %s, want %s", seen.Sub(begun), at.Sub(begun))
	}
	if have := r.servers[0].Queries() - asked; have > 2 { // one more if it took too long
		t.Errorf("looked %d times, want once", have)
	}
}

// A replica that does not answer keeps nobody from another one.
func TestWaitForOneOfSeveral(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 800, 800)
	r.forget()
	hold := r.servers[0].Hold()
	defer hold.Release()
	r.servers[1].Set(func(st *fakepg.State) { st.LSN = 900 })
	r.want(r.decide(r.read(wrote(900))), 1, Awaited)
}

// forget lets what the replicas said grow too old for an estimate.
func (r *rig) forget() {
	for _, rep := range r.set.Replicas {
		for known := true; known; {
			_, known = rep.Node.ExpectedAt(at(1, 900), mono.Now())
		}
	}
}

// writing has the primary write for a while, watched all the time. It returns where
// it was at half time.
func (r *rig) writing(d time.Duration) (half uint64) {
	for begun := mono.Now(); mono.Now().Sub(begun) < d; {
		r.primary.Advance(1)
		s := r.ask(r.group.Primary)
		if half == 0 && s.Begun.Sub(begun) > d/2 {
			half = uint64(s.Position.LSN)
		}
	}
	return half
}
