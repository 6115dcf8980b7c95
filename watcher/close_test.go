package watcher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/jackc/pgx/v5"
)

func TestCloseEndsEverything(t *testing.T) {
	c := newCluster(t, quiet) // checks for goroutines left behind
	n, s := c.standby(900)
	hold := s.Hold()
	underWay := c.join(n)
	hold.Arrived()
	waiting := c.join(n)
	c.group.Close()
	for name, b := range map[string]*batch{"under way": underWay, "waiting": waiting} {
		if _, err := c.finished(b); !errors.Is(err, ErrClosed) {
			t.Errorf("sample %s: have %v, want ErrClosed", name, err)
		}
	}
	hold.Release()
	for _, node := range []*Node{n, c.group.Primary} {
		if _, err := trySample(node); !errors.Is(err, ErrClosed) {
			t.Errorf("sample after Close: have %v, want ErrClosed", err)
		}
		if st := node.State(); !st.Failed || st.Healthy || st.Proven {
			t.Errorf("state after Close: have %+v", st)
		}
	}
	s.WaitConns(0)
	c.primary.WaitConns(0)
	c.group.Close() // again
	n.Start()
	if n := c.group.Add("late", s.Dial, ""); n.started {
		t.Error("a node that was added after Close was started")
	}
}

// Close returns when everything has ended, not before.
func TestCloseWaits(t *testing.T) {
	leakcheck.Check(t)
	dialled, release := make(chan struct{}), make(chan struct{})
	g := NewGroup(quiet, "p", func(context.Context) (*pgx.Conn, error) {
		close(dialled)
		<-release // without regard to the context
		return nil, errors.New("at last")
	})
	g.Primary.Start()
	<-dialled
	var released atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Close()
		if !released.Load() {
			t.Error("Close returned while a connection was being opened")
		}
	}()
	<-g.Primary.ctx.Done()
	giveUp := time.NewTimer(20 * time.Millisecond) // a Close that does not wait is over by then
	<-giveUp.C
	released.Store(true)
	close(release)
	<-done
}

func TestCloseOfWhatNeverRan(t *testing.T) {
	leakcheck.Check(t)
	g := NewGroup(Config{}, "p", nil)
	g.Close()
	g.Close()
	if _, err := g.Primary.Sample(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("have %v, want ErrClosed", err)
	}
}

func TestStartStopStress(t *testing.T) {
	leakcheck.Check(t)
	primary, standby := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	for i := range 40 {
		g := NewGroup(Config{IdleInterval: 1, WaitInterval: 1}, "p", primary.Dial)
		changed := g.Changed() // the first change: after the last there is none
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				n := g.Add("r", standby.Dial, "")
				n.AskBy(1)
				_, err := n.Sample(context.Background())
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Errorf("sample: %v", err)
				}
			})
			wg.Go(func() {
				if _, err := g.Primary.Sample(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
					t.Errorf("sample of the primary: %v", err)
				}
			})
			wg.Go(func() {
				if i%2 == 0 {
					<-changed
				}
				g.Close()
			})
		}
		wg.Wait()
		g.Close()
	}
}
