//go:build linux || darwin

package rywtest_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

const (
	startTime  = "pg_postmaster_start_time()"
	statsReset = "select stats_reset from pg_stat_wal"
)

// ended waits until a connection is closed by the server.
func ended(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ctx := within(t, patience)
	for conn.Ping(ctx) == nil {
	}
	if ctx.Err() != nil {
		t.Fatalf("connection still works after %v", patience)
	}
}

func TestKillAndStart(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	insert(t, c.Primary(), 1)
	must(t, c.WaitReplicated(within(t, patience)))
	for _, s := range c.Servers() {
		conn, before, pid := connect(t, s), text(t, s, startTime), s.PID()
		must(t, s.Kill(within(t, patience)))
		if s.Running() || s.PID() != 0 {
			t.Errorf("%s: running after Kill", s.Name())
		}
		ended(t, conn)
		wantError(t, s.Kill(within(t, patience)), rywtest.ErrNotRunning, s.Name())
		must(t, s.Start(within(t, patience)))
		wantError(t, s.Start(within(t, patience)), rywtest.ErrRunning, s.Name())
		wantRows(t, s, "1")
		if after := text(t, s, startTime); after == before || s.PID() == pid && !onDocker() {
			t.Errorf("%s: have start time %s and process %d, as before Kill", s.Name(), after, s.PID())
		}
		if !strings.Contains(s.Log(), "was interrupted") && !strings.Contains(s.Log(), "interrupted while in recovery") {
			t.Errorf("%s: no crash recovery in the log", s.Name())
		}
	}
	insert(t, c.Primary(), 2)
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, c.Replica(0), "1 2")
}

func TestKillBackend(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	for _, s := range c.Servers() {
		conn, started, reset, pid := connect(t, s), text(t, s, startTime), text(t, s, statsReset), s.PID()
		must(t, s.KillBackend(within(t, patience)))
		ended(t, conn)
		if have := text(t, s, startTime); have != started || s.PID() != pid {
			t.Errorf("%s: the postmaster has changed: started %s, was %s", s.Name(), have, started)
		}
		if text(t, s, statsReset) == reset {
			t.Errorf("%s: statistics were reset at %s still: the server did not recover", s.Name(), reset)
		}
	}
	insert(t, c.Primary(), 1)
	must(t, c.WaitReplicated(within(t, patience)))
}

func TestStopAndStart(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	for _, s := range c.Servers() {
		conn := connect(t, s)
		must(t, s.Stop(within(t, patience)))
		ended(t, conn)
		wantError(t, s.Stop(within(t, patience)), rywtest.ErrNotRunning, s.Name())
		must(t, s.Start(within(t, patience)))
		must(t, s.Restart(within(t, patience)))
		if strings.Contains(s.Log(), "interrupted") {
			t.Errorf("%s: crash recovery after Stop:\n%s", s.Name(), s.Log())
		}
		must(t, s.StopImmediate(within(t, patience)))
		must(t, s.Start(within(t, patience)))
		if !strings.Contains(s.Log(), "interrupted") {
			t.Errorf("%s: no crash recovery after StopImmediate:\n%s", s.Name(), s.Log())
		}
	}
	insert(t, c.Primary(), 1)
	must(t, c.WaitReplicated(within(t, patience)))
}

// A replica follows on its own when its primary comes back, and soon.
func TestReplicaSurvivesItsPrimary(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	must(t, c.Primary().Kill(within(t, patience)))
	must(t, c.Replica(0).Restart(within(t, patience)))
	wantRows(t, c.Replica(0), "")
	must(t, c.Primary().Start(within(t, patience)))
	insert(t, c.Primary(), 1)
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, c.Replica(0), "1")
}

func TestFreezeAndThaw(t *testing.T) {
	c := start(t, rywtest.Options{})
	r := c.Replica(0)
	held, asked := connect(t, r), connect(t, r)
	must(t, r.Freeze(within(t, patience)))
	must(t, r.Freeze(within(t, patience)))
	if !r.Running() {
		t.Error("a frozen server counts as not running")
	}
	must(t, connect(t, c.Replica(1)).Ping(within(t, patience))) // the other one works
	wantSilence(t, asked)
	if _, err := r.Conn(within(t, brief)); err == nil {
		t.Error("a frozen server answered")
	}
	insert(t, c.Primary(), 1)
	wantError(t, r.Stop(within(t, patience)), rywtest.ErrFrozen)
	must(t, r.Thaw(within(t, patience)))
	if _, err := ask(within(t, patience), held, "1"); err != nil {
		t.Errorf("a connection from before the freeze: %v", err)
	}
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, r, "1")

	must(t, r.Freeze(within(t, patience)))
	must(t, r.Kill(within(t, patience)))
	must(t, r.Start(within(t, patience)))
	wantRows(t, r, "1")
	for _, s := range c.Servers() {
		must(t, s.Freeze(within(t, patience)))
	}
	begin := time.Now()
	must(t, c.Close())
	if took := time.Since(begin); took > 5*time.Second && !onDocker() { // an engine may be busy
		t.Errorf("closing a frozen cluster took %v", took)
	}
}

// A fast shutdown of a primary waits for a standby that does not answer; the
// context ends the waiting, and Kill the server.
func TestStopThatHangs(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	must(t, c.Replica(0).Freeze(within(t, patience)))
	insert(t, c.Primary(), 1)
	wantTimeout(t, c.Primary().Stop(within(t, brief)), "primary: stop")
	if !c.Primary().Running() {
		t.Error("the primary has ended without its standby's acknowledgement")
	}
	must(t, c.Primary().Kill(within(t, patience)))
}

// Somebody else's kill is noticed, and Start works afterwards.
func TestServerThatDiesByItself(t *testing.T) {
	localOnly(t, "the process of a container's server is not this machine's to kill")
	c := start(t, rywtest.Options{Replicas: 1})
	p := c.Primary()
	must(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	ctx := within(t, patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.Running() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("a server that was killed counts as running")
		}
	}
	_, err := p.Position(within(t, patience))
	if err == nil || !strings.HasPrefix(err.Error(), "primary: position: ") {
		t.Errorf("have error %v, want one of the primary's position", err)
	}
	must(t, p.Start(within(t, patience)))
	insert(t, p, 1)
	must(t, c.WaitReplicated(within(t, patience)))
}

func TestPartition(t *testing.T) {
	c := start(t, rywtest.Options{Partitionable: true})
	p, cut, other := c.Primary(), c.Replica(0), c.Replica(1)
	held := connect(t, cut)
	must(t, cut.Partition(within(t, patience)))
	insert(t, p, 1)
	want, err := p.Position(within(t, patience))
	must(t, err)
	must(t, other.WaitCaughtUp(within(t, patience), want))
	wantTimeout(t, cut.WaitCaughtUp(within(t, brief), want)) // the kit still reaches it
	if _, err := cut.Conn(within(t, brief)); err == nil {
		t.Error("a partitioned replica answered a new connection")
	}
	wantSilence(t, held)
	must(t, cut.Heal(within(t, patience)))
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, cut, "1")

	must(t, p.Partition(within(t, patience)))
	if _, err := p.Conn(within(t, brief)); err == nil {
		t.Error("a partitioned primary answered a new connection")
	}
	wantRows(t, other, "1")
	must(t, p.Heal(within(t, patience)))
	insert(t, p, 2)
	must(t, c.WaitReplicated(within(t, patience)))
}

// wantSilence checks that a query gets no answer: neither rows nor an end.
func wantSilence(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if _, err := ask(within(t, brief), conn, "1"); !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("have %v, want no answer at all", err)
	}
}

func TestPartitionNeedsTheOption(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: rywtest.NoReplicas})
	wantError(t, c.Primary().Partition(within(t, patience)), rywtest.ErrNotPartitionable, "primary: partition")
	wantError(t, c.Primary().Heal(within(t, patience)), rywtest.ErrNotPartitionable)
}
