package watcher

import (
	"context"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// patience bounds every wait for something that must happen.
const patience = 10 * time.Second

// quiet has nothing probed but at the start and on demand.
var quiet = Config{IdleInterval: time.Hour, ProbeTimeout: patience}

// cluster is a group watched on fake servers.
type cluster struct {
	t        *testing.T
	group    *Group
	primary  *fakepg.Server
	servers  []*fakepg.Server
	replicas []*Node
}

// newCluster starts a primary at position 1000. Everything ends with the test,
// which fails if a goroutine is left.
func newCluster(t *testing.T, cfg Config) *cluster {
	t.Helper()
	leakcheck.Check(t)
	c := &cluster{t: t, primary: fakepg.New(t, fakepg.PrimaryAt(1000))}
	c.group = NewGroup(cfg, "primary", c.primary.Dial)
	t.Cleanup(c.group.Close)
	return c
}

// add starts a standby and has it watched.
func (c *cluster) add(st fakepg.State) (*Node, *fakepg.Server) {
	c.t.Helper()
	s := fakepg.New(c.t, st)
	c.t.Cleanup(c.group.Close) // before the server, which is closed first otherwise
	n := c.group.Add(s.Addr(), s.Dial, "")
	c.servers, c.replicas = append(c.servers, s), append(c.replicas, n)
	return n, s
}

// standby is add of a standby at a position, asked once behind the primary.
func (c *cluster) standby(lsn uint64) (*Node, *fakepg.Server) {
	c.t.Helper()
	n, s := c.add(fakepg.StandbyAt(2+len(c.servers), lsn))
	c.settle(c.group.Primary, c.primary)
	c.settle(n, s)
	return n, s
}

// settle waits until the question that a node's prober begins with is behind.
func (c *cluster) settle(n *Node, s *fakepg.Server) {
	c.t.Helper()
	n.Start()
	c.until("the prober's first sample", func() bool {
		queries, _ := n.Counters()
		st := n.State()
		return queries > 0 && st.At != 0 && (st.Failed || int(queries) == s.Queries())
	})
	if n.State().Failed { // a busy machine, and a short timeout
		c.recovered(n)
	}
}

// sample asks a node for its position, which must be answered.
func (c *cluster) sample(n *Node) Sample {
	c.t.Helper()
	s, err := trySample(n)
	if err != nil {
		c.t.Fatalf("sample of %s: %v", n.Name(), err)
	}
	return s
}

func trySample(n *Node) (Sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.Sample(ctx)
}

// fails asks a node for its position, which must not be answered.
func (c *cluster) fails(n *Node) error {
	c.t.Helper()
	s, err := trySample(n)
	if err == nil {
		c.t.Fatalf("sample of %s: have %s, want an error", n.Name(), s.Position)
	}
	return err
}

// recovered asks a node until it answers again, which it may not do before its
// backoff is over.
func (c *cluster) recovered(n *Node) Sample {
	c.t.Helper()
	limit := time.Now().Add(patience)
	for {
		s, err := trySample(n)
		if err == nil {
			return s
		}
		if time.Now().After(limit) {
			c.t.Fatalf("sample of %s: %v", n.Name(), err)
		}
	}
}

// promote has the primary on another timeline, which takes new connections: a
// server that is a primary stays on its timeline.
func (c *cluster) promote(timeline uint32, lsn uint64) {
	c.t.Helper()
	c.primary.Crash(func(st *fakepg.State) { st.Timeline, st.LSN = timeline, lsn })
	c.recovered(c.group.Primary)
}

// until waits for publications until ok holds.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		changed := c.group.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			c.t.Fatalf("not published: %s", what)
		}
	}
}

// finished waits for a batch and returns what it brought.
func (c *cluster) finished(b *batch) (Sample, error) {
	c.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-b.done:
		return b.sample, b.err
	case <-limit.C:
		c.t.Fatalf("position query not answered")
		return Sample{}, nil
	}
}

// join is Node.join, which must not fail.
func (c *cluster) join(n *Node) *batch {
	c.t.Helper()
	b, _, err := n.join()
	if err != nil {
		c.t.Fatalf("join the next sample: %v", err)
	}
	return b
}

// wantState checks what is known of a node.
func wantState(t *testing.T, n *Node, healthy, proven bool, reason string) {
	t.Helper()
	st := n.State()
	if st.Healthy != healthy || st.Proven != proven || st.Reason != reason {
		t.Errorf("state: have healthy %v, proven %v, reason %q, want %v, %v, %q",
			st.Healthy, st.Proven, st.Reason, healthy, proven, reason)
	}
}

func at(timeline uint32, lsn uint64) token.Position {
	return token.Position{Timeline: timeline, LSN: token.LSN(lsn)}
}
