//go:build linux || darwin

package rywtest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// The promise is "well under two seconds", on a machine that has nothing else to
// do. A busy one gets several tries, and a skip that says so.
func TestStartTakesLessThanTwoSeconds(t *testing.T) {
	localOnly(t, "the promise is about local servers")
	const tries, limit = 5, 2 * time.Second
	start(t, rywtest.Options{Replicas: rywtest.NoReplicas}) // makes the template, if need be
	var took []time.Duration
	for range tries {
		begin := time.Now()
		c, err := rywtest.Start(within(t, patience), rywtest.Options{})
		took = append(took, time.Since(begin).Round(time.Millisecond))
		must(t, err)
		must(t, c.Close())
		if slices.Min(took) < limit {
			t.Logf("started in %v", took)
			return
		}
	}
	if load := load(); load > 2*float64(runtime.NumCPU()) {
		t.Skipf("started in %v, at a load of %v on %d processors", took, load, runtime.NumCPU())
	}
	t.Errorf("started in %v, want one below %v", took, limit)
}

// load is the number of programs that want to run, 0 where it is not known.
func load() float64 {
	var minute float64
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &minute)
	}
	return minute
}

func TestDefaultClusterReplicates(t *testing.T) {
	c := start(t, rywtest.Options{})
	if have := len(c.Replicas()); have != rywtest.DefaultReplicas {
		t.Fatalf("have %d replicas, want %d", have, rywtest.DefaultReplicas)
	}
	insert(t, c.Primary(), 1)
	must(t, c.WaitReplicated(within(t, patience)))
	for i, s := range c.Servers() {
		wantRows(t, s, "1")
		want := []string{"primary", "replica1", "replica2"}[i]
		if s.Name() != want || text(t, s, "current_setting('cluster_name')") != want {
			t.Errorf("server %d: have name %q, want %q", i, s.Name(), want)
		}
		if have, want := text(t, s, "pg_is_in_recovery()"), map[bool]string{true: "false", false: "true"}[i == 0]; have != want {
			t.Errorf("%s in recovery: have %s, want %s", s.Name(), have, want)
		}
		if !s.Running() || s.PID() == 0 {
			t.Errorf("%s: have running %v and process %d, want a process", s.Name(), s.Running(), s.PID())
		}
	}
	// What decides what readers see is as PostgreSQL has it by default.
	for name, want := range map[string]string{
		"synchronous_commit": "on", "full_page_writes": "on", "hot_standby_feedback": "off", "max_standby_streaming_delay": "30s",
	} {
		if have := text(t, c.Replica(0), "current_setting('"+name+"')"); have != want {
			t.Errorf("%s: have %s, want %s", name, have, want)
		}
	}
}

func TestDSNAsAndUnixSocket(t *testing.T) {
	localOnly(t, "containers keep their sockets for themselves")
	c := start(t, rywtest.Options{Replicas: rywtest.NoReplicas})
	p := c.Primary()
	execute(t, p, `create role "odd @ name" login`)
	for _, dsn := range []string{
		p.DSNAs("odd @ name"),
		"user='odd @ name' dbname=postgres host=" + p.SocketDir() + " port=" + text(t, p, "current_setting('port')"),
	} {
		conn, err := pgx.Connect(within(t, patience), dsn)
		must(t, err)
		have, err := ask(within(t, patience), conn, "current_user")
		must(t, err)
		if have != "odd @ name" {
			t.Errorf("%s: have user %q", dsn, have)
		}
		conn.Close(within(t, patience))
	}
}

func TestNoPostgresNamesTheCommandThatInstallsIt(t *testing.T) {
	localOnly(t, "containers bring PostgreSQL with them")
	t.Setenv("PATH", "")
	_, err := rywtest.Start(context.Background(), rywtest.Options{BinDir: "/nowhere"})
	wantError(t, err, rywtest.ErrNoPostgres, "/nowhere", "apt-get install", "dnf install", "brew install")
	t.Setenv(rywtest.EnvBinDir, "/also/nowhere")
	_, err = rywtest.Start(context.Background(), rywtest.Options{})
	wantError(t, err, rywtest.ErrNoPostgres, "/also/nowhere", rywtest.EnvBinDir)
}

// privateTemp makes clusters live in a directory of this test, which must be empty
// in the end.
func privateTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "test-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // servers of root run as another user
	t.Setenv(rywtest.EnvDir, dir)
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left := remains(t, dir, os.Getpid()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// files lists a directory without the template of a user who has no home.
func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	return slices.DeleteFunc(all, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "rywtest-cache-")
	})
}

func TestFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	dir := privateTemp(t)
	_, err := rywtest.Start(within(t, patience), rywtest.Options{ReplicaSettings: map[string]string{"no_such_setting": "1"}})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("have error %v, want what PostgreSQL said", err)
	}
	wantEmpty(t, dir)
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	dir := privateTemp(t)
	for _, after := range []time.Duration{0, 5, 20, 60, 120, 200} {
		ctx, cancel := context.WithTimeout(context.Background(), after*time.Millisecond)
		c, err := rywtest.Start(ctx, rywtest.Options{})
		cancel()
		if err == nil {
			must(t, c.Close())
		} else {
			wantTimeout(t, err)
		}
		wantEmpty(t, dir)
	}
}

func TestCloseWhileOthersWork(t *testing.T) {
	dir := privateTemp(t)
	c := start(t, rywtest.Options{})
	r := c.Replica(0)
	must(t, r.PauseReplay(within(t, patience)))
	insert(t, c.Primary(), 1)
	must(t, c.Replica(1).Freeze(within(t, patience)))
	ctx := within(t, patience)
	calls := []func() error{
		func() error { return c.WaitReplicated(ctx) },
		func() error { return c.Replica(1).Start(ctx) }, // it runs: an error at once
		func() error { _, err := c.AddReplica(ctx); return err },
		func() error { return r.WaitCaughtUp(ctx, 1<<60) },
	}
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	must(t, c.Close())
	must(t, c.Close())
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			t.Errorf("call %d succeeded on a closed cluster", i)
		}
	}
	wantError(t, errs[3], rywtest.ErrClosed)
	wantError(t, r.Start(ctx), rywtest.ErrClosed)
	if err := r.Stop(ctx); err == nil {
		t.Error("a server of a closed cluster could be stopped")
	}
	wantEmpty(t, dir)
}

func TestFourClustersAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	ids, errs := make([]string, 4), make([]error, 4)
	for i := range ids {
		wg.Go(func() { ids[i], errs[i] = liveOnce(within(t, 2*patience)) })
	}
	wg.Wait()
	for i := range ids {
		must(t, errs[i])
		if n := slices.Index(ids, ids[i]); n != i {
			t.Errorf("clusters %d and %d have the same system identifier %s", n, i, ids[i])
		}
	}
}

// liveOnce starts a cluster, replicates a row and returns its system identifier.
func liveOnce(ctx context.Context) (id string, err error) {
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 1})
	if err != nil {
		return "", err
	}
	defer c.Close()
	conn, err := c.Primary().Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table x ()"); err != nil {
		return "", err
	}
	if err := c.WaitReplicated(ctx); err != nil {
		return "", err
	}
	replica, err := c.Replica(0).Conn(ctx)
	if err != nil {
		return "", err
	}
	defer replica.Close(ctx)
	return ask(ctx, replica, "select system_identifier from pg_control_system(), x right join (select) y on true")
}

func TestLongTempDirStillHasSockets(t *testing.T) {
	localOnly(t, "containers keep their sockets for themselves")
	long := filepath.Join(privateTemp(t), strings.Repeat("x", 100))
	must(t, os.Mkdir(long, 0o755))
	t.Setenv(rywtest.EnvDir, long)
	c := start(t, rywtest.Options{Replicas: rywtest.NoReplicas})
	p := c.Primary()
	socket := filepath.Join(p.SocketDir(), ".s.PGSQL."+text(t, p, "current_setting('port')"))
	conn, err := net.Dial("unix", socket)
	must(t, err)
	conn.Close()
	must(t, c.Close())
	if _, err := os.Stat(p.SocketDir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", p.SocketDir(), err)
	}
	wantEmpty(t, long)
}

func TestAddReplica(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	insert(t, c.Primary(), 1)
	s, err := c.AddReplica(within(t, patience))
	must(t, err)
	if s.Name() != "replica2" || len(c.Replicas()) != 2 || c.Replica(1) != s {
		t.Errorf("have %s of %d replicas, want replica2, the second of 2", s.Name(), len(c.Replicas()))
	}
	wantRows(t, s, "1")
	insert(t, c.Primary(), 2)
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, s, "1 2")
}
