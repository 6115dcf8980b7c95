package watcher

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
)

// A crash closes every connection; what they said is worth nothing then.
func TestSampleDiesWithItsConnection(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	life := n.State().Incarnation
	s.Drop()
	err := c.fails(n)
	st := n.State()
	if !st.Failed || st.Healthy || st.Proven || st.Incarnation != 0 || st.Reason != err.Error() {
		t.Errorf("state: have %+v, want failed with %q", st, err)
	}
	if st.High != at(1, 900) {
		t.Errorf("high-water mark: have %s, want 1:0/384", st.High)
	}
	c.recovered(n)
	wantState(t, n, true, true, "")
	if n.State().Incarnation != life {
		t.Error("the server lives on, but under another incarnation")
	}
}

func TestIncarnationChangesWithACrash(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	life := n.State().Incarnation
	s.Crash(nil)
	c.fails(n)
	c.recovered(n)
	if have := n.State().Incarnation; have == life {
		t.Error("incarnation is the same after a crash")
	}
	wantState(t, n, true, true, "")
}

func TestProbeTimeout(t *testing.T) {
	cfg := quiet
	cfg.ProbeTimeout = 200 * time.Millisecond
	c := newCluster(t, cfg)
	n, s := c.standby(900)
	hold := s.Hold()
	defer hold.Release()
	err := c.fails(n)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "probe timeout of 200ms passed") {
		t.Errorf("have %v, want a probe timeout", err)
	}
	if !n.State().Failed {
		t.Error("state is not failed")
	}
}

func TestProbeTimeoutCoversConnecting(t *testing.T) {
	cfg := quiet
	cfg.ProbeTimeout = 30 * time.Millisecond
	c := newCluster(t, cfg)
	n := c.group.Add("r", func(ctx context.Context) (*pgx.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, "")
	if err := c.fails(n); !strings.Contains(err.Error(), "probe timeout of 30ms passed") {
		t.Errorf("have %v, want a probe timeout", err)
	}
}

// A server that fails is not asked again at once, however many ask; the answer
// is the failure.
func TestBackoff(t *testing.T) {
	c := newCluster(t, quiet)
	dials := 0
	down := errors.New("down")
	n := c.group.Add("r", func(context.Context) (*pgx.Conn, error) { dials++; return nil, down }, "")
	for _, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000} {
		want *= time.Millisecond
		n.mu.Lock()
		n.retryAt = 0
		n.mu.Unlock()
		if err := c.fails(n); !errors.Is(err, down) {
			t.Fatalf("have %v", err)
		}
		n.mu.Lock()
		have, wait := n.backoff, n.retryAt.Sub(n.State().At)
		n.mu.Unlock()
		// The prober may have failed once before us.
		if have != want && have != min(2*want, maxBackoff) || wait > have || wait <= 0 {
			t.Errorf("backoff: have %s until in %s, want %s", have, wait, want)
		}
	}
	before := dials
	for range 10 {
		if err := c.fails(n); !errors.Is(err, down) {
			t.Errorf("within the backoff: have %v, want the last error", err)
		}
	}
	if dials != before {
		t.Errorf("dials within the backoff: have %d, want none", dials-before)
	}
}

func TestBackoffEndsWithSuccess(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Refuse(true)
	s.Drop()
	c.fails(n)
	s.Refuse(false)
	c.recovered(n)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.backoff != 0 || n.retryAt != 0 || n.lastErr != nil {
		t.Errorf("have backoff %s, error %v, want none", n.backoff, n.lastErr)
	}
}

func TestFailedQueryGivesUpItsConnection(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Fail("XX000")
	c.fails(n)
	s.Fail("")
	c.recovered(n)
	if have := s.Dials(); have != 2 {
		t.Errorf("connections opened: have %d, want 2", have)
	}
	s.WaitConns(1)
}

// pgx goes on waiting for a server that does not answer, for 15 seconds, when a
// query is given up; nothing of that may outlive Close.
func TestCloseIsNotKeptByAFrozenServer(t *testing.T) {
	primary, s := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	src, err := pgdial.FromConfig(&postgres.Config{DSN: s.DSN()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("while it is frozen", func(t *testing.T) {
		// The server itself is still there, with its sockets open.
		leakcheck.Check(t, "fakepg.(*Server).serve")
		g := NewGroup(Config{IdleInterval: time.Hour, ProbeTimeout: 200 * time.Millisecond}, "p", primary.Dial)
		c := &cluster{t: t, group: g}
		n := g.Add("r", src.Dial, "")
		c.settle(n, s)
		s.Freeze()
		c.fails(n) // on the connection it has
		began := time.Now()
		g.Close()
		if took := time.Since(began); took > patience/2 {
			t.Errorf("Close took %s", took)
		}
	})
}

// Nobody has to ask for a server that failed to be found again, however seldom one is
// asked that answers.
func TestServerThatFailedIsAskedAgainSoon(t *testing.T) {
	c := newCluster(t, quiet) // an hour between two questions
	n, s := c.standby(900)
	s.Refuse(true)
	s.Drop()
	c.fails(n)
	s.Refuse(false)
	n.AskBy(1) // which may fail once more, or not be made: it is too soon
	c.until("it answers again", func() bool { return n.State().Proven })
}
