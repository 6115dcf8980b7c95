package watcher

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// A sample that is asked for while a query is under way must not be answered by
// it: what happened in between would be missing.
func TestSampleJoinsTheNextQueryNotTheOneUnderWay(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	hold := s.Hold()
	first := c.join(n)
	hold.Arrived() // with the position of now
	s.Advance(500)
	asked := mono.Now()
	second := c.join(n)
	if first == second {
		t.Fatal("a query under way was joined")
	}
	hold.Let()
	if got, err := c.finished(first); err != nil || got.Position != at(1, 1000) {
		t.Errorf("query under way: have %s, %v, want 1:0/3E8", got.Position, err)
	}
	hold.Arrived()
	hold.Release()
	got, err := c.finished(second)
	if err != nil || got.Position != at(1, 1500) {
		t.Errorf("next query: have %s, %v, want 1:0/5DC", got.Position, err)
	}
	if got.Begun <= asked || got.Received < got.Begun {
		t.Errorf("next query: asked at %d, have begun %d, received %d", asked, got.Begun, got.Received)
	}
}

func TestConcurrentSamplesShareOneQuery(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	before := s.Queries()
	hold := s.Hold()
	underWay := c.join(n)
	hold.Arrived()
	next := c.join(n)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if b := c.join(n); b != next {
				t.Error("a caller got a query of its own")
			}
		})
	}
	wg.Wait()
	hold.Release()
	for _, b := range []*batch{underWay, next} {
		if _, err := c.finished(b); err != nil {
			t.Error(err)
		}
	}
	if have := s.Queries() - before; have != 2 {
		t.Errorf("queries for 52 callers: have %d, want 2", have)
	}
}

func TestPrimaryHasTwoLanes(t *testing.T) {
	c := newCluster(t, quiet)
	c.settle(c.group.Primary, c.primary)
	hold := c.primary.Hold()
	first := c.join(c.group.Primary)
	hold.Arrived()
	second := c.join(c.group.Primary)
	hold.Arrived() // while the first is under way
	third := c.join(c.group.Primary)
	if fourth := c.join(c.group.Primary); fourth != third || third == second {
		t.Error("with both lanes busy callers do not share the next query")
	}
	if have, want := c.primary.Conns(), primaryLanes; have != want {
		t.Errorf("connections: have %d, want %d", have, want)
	}
	hold.Release()
	for _, b := range []*batch{first, second, third} {
		if _, err := c.finished(b); err != nil {
			t.Error(err)
		}
	}
}

func TestReplicaHasOneLane(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	hold := s.Hold()
	first := c.join(n)
	hold.Arrived()
	second := c.join(n)
	hold.Let()
	if _, err := c.finished(first); err != nil {
		t.Error(err)
	}
	hold.Arrived()
	hold.Release()
	if _, err := c.finished(second); err != nil {
		t.Error(err)
	}
	if have := s.Dials(); have != 1 {
		t.Errorf("connections: have %d, want 1", have)
	}
}

func TestCountersCountQueriesAndCalls(t *testing.T) {
	c := newCluster(t, quiet)
	c.settle(c.group.Primary, c.primary)
	for range 3 {
		c.sample(c.group.Primary)
	}
	if queries, calls := c.group.Primary.Counters(); queries != 4 || calls != 4 {
		t.Errorf("have %d queries for %d calls, want 4 for 4", queries, calls)
	}
}

func TestSampleEndsWithItsContextAlone(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	hold := s.Hold()
	other := c.join(n)
	hold.Arrived()
	next := c.join(n)
	cause := errors.New("caller has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := n.Sample(ctx); !errors.Is(err, cause) {
		t.Errorf("cancelled sample: have %v, want %v", err, cause)
	}
	hold.Release()
	for _, b := range []*batch{other, next} {
		if _, err := c.finished(b); err != nil {
			t.Errorf("others' sample: %v", err)
		}
	}
	wantState(t, n, true, true, "")
}
