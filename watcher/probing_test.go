package watcher

import (
	"reflect"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
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
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := jitter(DefaultIdleInterval)
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

// Nobody waits any more once the node was asked: whoever still does has to say so.
func TestNodeIsAskedWhenItIsWanted(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	before := s.Queries()
	n.AskBy(mono.Now().Add(time.Hour)) // alone this would be in an hour
	begun := mono.Now()
	at := begun.Add(20 * time.Millisecond)
	n.AskBy(at)
	n.AskBy(at.Add(time.Minute)) // the earlier counts
	changed := c.group.Changed()
	s.WaitQueries(before + 1)
	<-changed
	if st := n.State(); st.Begun < at {
		t.Errorf("asked %s after, want 20ms", st.Begun.Sub(begun))
	}
	if n.wanted.Load() != 0 {
		t.Error("still wanted")
	}
	if at := n.due(1, 9000); at != 9000 {
		t.Errorf("due after that: have %d, want the idle time", at)
	}
	// At once, although its next idle probe is an hour away.
	n.AskBy(mono.Now())
	s.WaitQueries(before + 2)
	if have := s.Queries(); have != before+2 {
		t.Errorf("asked %d times, want twice", have-before)
	}
}

func TestWhenANodeIsDue(t *testing.T) {
	n := newNode(NewGroup(Config{WaitInterval: 10}, "p", nil), "r", Replica, nil)
	for _, c := range []struct{ wanted, want mono.Instant }{
		{0, 1000},
		{500, 500},
		{2000, 1000}, // it is asked before that anyway
		{105, 110},   // not without pause, however many want it
		{1, 110},
	} {
		n.wanted.Store(int64(c.wanted))
		if have := n.due(100, 1000); have != c.want {
			t.Errorf("wanted by %d: have %d, want %d", c.wanted, have, c.want)
		}
	}
}
