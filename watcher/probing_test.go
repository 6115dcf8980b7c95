package watcher

import (
	"reflect"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
)

func TestDefaults(t *testing.T) {
	want := Config{IdleInterval: time.Second, WaitInterval: time.Millisecond, ProbeTimeout: time.Second}
	if have := (Config{}).withDefaults(); !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v, want %+v", have, want)
	}
	set := Config{IdleInterval: 1, WaitInterval: 2, ProbeTimeout: 3, Name: "x"}
	if have := set.withDefaults(); !reflect.DeepEqual(have, set) {
		t.Errorf("have %+v, want %+v", have, set)
	}
}

// Nobody waits: a node is asked at most once in an interval.
func TestIdleProbing(t *testing.T) {
	const interval, n = 10 * time.Millisecond, 8
	cfg := quiet
	cfg.IdleInterval = interval
	c := newCluster(t, cfg)
	began := time.Now()
	_, s := c.add(fakepg.StandbyAt(2, 900))
	s.WaitQueries(n)
	c.primary.WaitQueries(n)
	if took, least := time.Since(began), (n-1)*interval; took < least {
		t.Errorf("%d probes took %s, want %s or more", n, took, least)
	}
}

func TestIdlePauseIsJittered(t *testing.T) {
	n := newNode(NewGroup(Config{}, "p", nil), "r", Replica, nil)
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := n.pause()
		if d < DefaultIdleInterval || d > DefaultIdleInterval*5/4 {
			t.Fatalf("pause: have %s, want 1s to 1.25s", d)
		}
		seen[d] = true
	}
	if len(seen) < 100 {
		t.Errorf("have %d different pauses of 1000", len(seen))
	}
	if d := jitter(0); d != 0 {
		t.Errorf("jitter of nothing: have %s", d)
	}
}

// Somebody waits: the node is asked at once, although its next idle probe is an
// hour away, and then again and again.
func TestDemandProbesAtOnceUntilReleased(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	other, otherServer := c.standby(900)
	before, otherBefore := s.Queries(), otherServer.Queries()
	first := c.group.Demand([]*Node{n})
	second := c.group.Demand([]*Node{n})
	s.WaitQueries(before + 5)
	first()
	s.WaitQueries(s.Queries() + 5) // the second still waits
	second()
	if d := n.pause(); d < quiet.IdleInterval {
		t.Errorf("pause after release: have %s, want an hour or more", d)
	}
	// One probe may have been under way, one may have been timed already.
	left := s.Queries() + 2
	for range 50 {
		c.sample(n)
		left++
	}
	if have := s.Queries(); have > left {
		t.Errorf("queries after release: have %d more than asked for", have-left)
	}
	if have := otherServer.Queries(); have != otherBefore || other.demand.Load() != 0 {
		t.Errorf("queries of a node that nobody waits for: have %d, want none", have-otherBefore)
	}
}

func TestDemandPublishesProgress(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	release := c.group.Demand([]*Node{n})
	defer release()
	s.Advance(50)
	c.until("position 950", func() bool { return n.State().Position == at(1, 950) })
}

// A primary without replicas is not probed.
func TestNothingRunsUntilAsked(t *testing.T) {
	c := newCluster(t, quiet)
	if q, calls := c.group.Primary.Counters(); q != 0 || calls != 0 || c.primary.Dials() != 0 || c.group.Primary.started {
		t.Error("a primary without replicas is probed")
	}
	n, _ := c.add(fakepg.StandbyAt(2, 900))
	c.until("both", func() bool { return n.State().Proven })
	if have := c.group.Replicas(); len(have) != 1 || have[0] != n {
		t.Errorf("replicas: have %v", have)
	}
}

func TestEveryPublicationIsTold(t *testing.T) {
	c := newCluster(t, quiet)
	n, _ := c.standby(900)
	for _, node := range []*Node{n, c.group.Primary} {
		changed := c.group.Changed()
		c.sample(node)
		select {
		case <-changed:
		default:
			t.Errorf("%s: not told", node.Name())
		}
		if c.group.Changed() == changed {
			t.Errorf("%s: the next publication would not be told", node.Name())
		}
	}
}
