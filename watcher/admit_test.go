package watcher

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/jackc/pgx/v5"
)

// admit runs Admit as a pool would.
func (c *cluster) admit(n *Node, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.Admit(ctx, conn)
}

func wantRefused(t *testing.T, n *Node, conn *pgx.Conn, err error, why string) {
	t.Helper()
	if !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), why) {
		t.Errorf("have %v, want ErrNotAdmitted: %s", err, why)
	}
	if n.untrusted.Load() == nil && n.Admitted(conn) {
		t.Error("refused, but may be used again")
	}
}

func TestAdmitSameServer(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn, before := s.Connect(), s.Queries()
	if n.Admitted(conn) {
		t.Error("admitted before it was asked for")
	}
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
	if have := s.Queries() - before; have != 1 {
		t.Errorf("queries for it: have %d, want the connection's own alone", have)
	}
}

// The pool may be first: the watcher has not asked yet.
func TestAdmitAsksTheWatcher(t *testing.T) {
	c := newCluster(t, quiet)
	s := fakepg.New(t, fakepg.StandbyAt(2, 900))
	t.Cleanup(c.group.Close)
	n := newNode(c.group, "r", Replica, s.Dial) // not started
	t.Cleanup(n.close)
	conn := s.Connect()
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
}

// What the watcher published since is no more than this connection's server has.
func TestAdmitIsNotRefusedByProgress(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn := s.Connect()
	hold := s.Hold()
	result := make(chan error, 1)
	go func() { result <- c.admit(n, conn) }()
	hold.Arrived() // it says 900
	s.Advance(50)
	b := c.join(n)
	hold.Arrived()
	hold.Let()
	hold.Let()
	hold.Release()
	if _, err := c.finished(b); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
}

// A standby that crashed opens before it is back where it was.
func TestAdmitRefusesAStandbyThatWentBack(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Crash(func(st *fakepg.State) { st.LSN = 500 })
	conn := s.Connect()
	wantRefused(t, n, conn, c.admit(n, conn), "at 1:0/1F4, want 1:0/384")
	s.Set(func(st *fakepg.State) { st.LSN = 900 })
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
	wantState(t, n, true, true, "")
}

func TestAdmitSaysHaveAndWantWhenItsTimeIsUp(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Crash(func(st *fakepg.State) { st.LSN = 500 })
	conn := s.Connect()
	hold := s.Hold()
	defer hold.Release()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 100*time.Millisecond, errors.New("pool gave up"))
	defer cancel()
	err := n.Admit(ctx, conn)
	if err == nil || !strings.Contains(err.Error(), "pool gave up") {
		t.Errorf("have %v, want the context's cause", err)
	}
	err = n.rest(ctx, Sample{Position: at(1, 500)}, time.Hour)
	wantRefused(t, n, conn, err, "at 1:0/1F4, want 1:0/384")
	if n.untrusted.Load() != nil {
		t.Error("a standby that is slow is not distrusted for that")
	}
}

// Whoever waits for a connection is not kept for as long as the replay takes, and
// does not keep the server from it by asking without pause.
func TestAdmitGivesUpOnAStandbyThatIsNotBack(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Crash(func(st *fakepg.State) { st.LSN = 500 })
	before, began := s.Queries(), time.Now()
	const pools = 8
	refused := make(chan error, pools)
	for range pools {
		conn := s.Connect()
		go func() { refused <- c.admit(n, conn) }()
	}
	for range pools {
		if err := <-refused; !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "at 1:0/1F4, want 1:0/384") {
			t.Errorf("have %v, want where it is", err)
		}
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("refused after %s", took)
	}
	if have, most := s.Queries()-before, 4*pools; have > most {
		t.Errorf("have %d queries, want %d or fewer", have, most)
	}
	if n.untrusted.Load() != nil {
		t.Error("a standby that is slow is not distrusted for that")
	}
}

// The watcher's connection is to a life of the server that is over.
func TestAdmitAfterARestart(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	old := s.Connect()
	if err := c.admit(n, old); err != nil {
		t.Fatal(err)
	}
	s.Crash(nil)
	conn := s.Connect()
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
	if n.Admitted(old) {
		t.Error("a connection to the life before may be used again")
	}
	wantState(t, n, true, true, "")
}

// An address that was moved to another server: the watcher's connection to the
// old one still works, but the address leads to one server.
func TestAdmitMovesTheWatcherAfterItsAddress(t *testing.T) {
	c := newCluster(t, quiet)
	a, b := fakepg.New(t, fakepg.StandbyAt(2, 900)), fakepg.New(t, fakepg.StandbyAt(3, 950))
	t.Cleanup(c.group.Close)
	leads := make(chan *fakepg.Server, 1)
	leads <- a
	n := c.group.Add("r", func(ctx context.Context) (*pgx.Conn, error) {
		s := <-leads
		defer func() { leads <- s }()
		return s.Dial(ctx)
	}, "")
	c.settle(c.group.Primary, c.primary)
	c.settle(n, a)
	old := a.Connect()
	if err := c.admit(n, old); err != nil {
		t.Fatal(err)
	}
	<-leads
	leads <- b
	conn := b.Connect()
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
	if have := n.State().Position; have != at(1, 950) {
		t.Errorf("watched position: have %s, want the new server's", have)
	}
	// The connection to the old server works on, but the positions that are
	// published now are not that server's.
	if n.Admitted(old) {
		t.Error("a connection to the server before may be used again")
	}
}

func TestAdmitRecognisesSeveralServers(t *testing.T) {
	c := newCluster(t, quiet)
	n, _ := c.standby(900)
	other := fakepg.New(t, fakepg.StandbyAt(9, 5000))
	conn := other.Connect() // what the pool got, while the watcher gets the first
	err := c.admit(n, conn)
	wantRefused(t, n, conn, err, "several servers answer at this address")
	wantState(t, n, true, false, "several servers answer at this address")
	// From now on its pool's connections are not checked, as nothing is promised.
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("then: have %v, admitted %v", err, n.Admitted(conn))
	}
	c.sample(n)
	wantState(t, n, true, false, "several servers answer at this address")
}

func TestAdmitRecognisesAPooler(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn := s.Connect()
	s.Set(func(st *fakepg.State) { st.Pooled = true })
	began := time.Now()
	wantRefused(t, n, conn, c.admit(n, conn), pooledReason)
	if took := time.Since(began); took > admitTimeout/2 {
		t.Errorf("refused after %s, want at once", took)
	}
	wantState(t, n, true, false, pooledReason)
}

func TestUntrustedPoolIsNotChecked(t *testing.T) {
	c := newCluster(t, quiet)
	n := newNode(c.group, "r", Replica, nil)
	why := "because"
	n.untrusted.Store(&why)
	conn := fakepg.New(t, fakepg.StandbyAt(2, 900)).Connect()
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
}

func TestAdmitOfADeadConnection(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn := s.Connect()
	s.Drop()
	if err := c.admit(n, conn); err == nil || n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
}

// A dead watcher is not a reason to serve: it comes back first.
func TestAdmitWaitsForTheWatcher(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn := s.Connect()
	n.fail(errors.New("lost"))
	if err := c.admit(n, conn); err != nil || !n.Admitted(conn) {
		t.Errorf("have %v, admitted %v", err, n.Admitted(conn))
	}
	wantState(t, n, true, true, "")
}

func TestWhatAdmits(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	conn := s.Connect()
	mine := c.sample(n)
	if !n.admits(conn, mine) {
		t.Fatal("same life: not admitted")
	}
	earlier := mine
	earlier.Position.LSN = 800 // the watcher has seen the same life at 900 since
	if !n.admits(conn, earlier) {
		t.Error("same life, asked before the watcher: not admitted")
	}
	other := mine
	other.Incarnation++
	if n.admits(conn, other) {
		t.Error("other life: admitted")
	}
	n.state.Store(&State{Sample: mine, High: at(1, 901)})
	if n.admits(conn, mine) {
		t.Error("behind the high-water mark: admitted")
	}
	n.state.Store(&State{Sample: mine, Failed: true})
	if n.admits(conn, mine) {
		t.Error("failed: admitted")
	}
}
