package rywpgx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"gorm.io/gorm"
)

// bouncer starts a PgBouncer in transaction mode in front of a server and returns
// its connection string.
func bouncer(t *testing.T, s *rywtest.Server, size int) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not in the PATH")
	}
	dir := t.TempDir()
	port := freePort(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
postgres = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
ignore_startup_parameters = extra_float_digits
`, s.Port(), port, size), 0o644))
	var log bytes.Buffer
	cmd := exec.Command(program, config)
	cmd.Stderr = &log
	if os.Getuid() == 0 { // it refuses to run as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(t, "nobody")}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Log(log.String())
		}
	})
	await(t, fmt.Sprintf("127.0.0.1:%d", port))
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
}

func credential(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	must(t, err)
	uid, err := strconv.Atoi(u.Uid)
	must(t, err)
	gid, err := strconv.Atoi(u.Gid)
	must(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func await(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("nothing listens on %s: %v", addr, err)
		case <-tick.C:
		}
	}
}

// In transaction mode another server connection may answer every time, and more
// clients than server connections share them. What is captured still covers the
// write, says that a pooler was in between, and costs no round trip.
func TestPgBouncer(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			s := settings{dsn: bouncer(t, cluster.Primary(), 2), params: "default_query_exec_mode=" + mode, wire: &wire{}}
			h, tab := newHooks(), table(t)
			db := s.ours(t, h)
			replica := settings{server: cluster.Replica(0)}.ours(t, newHooks())
			var all sync.WaitGroup
			for g := range 6 {
				all.Go(func() {
					for i := range 30 {
						v := g*1000 + i
						w := &who{}
						write := writes[[]string{"Exec", "Transaction", "Raw returning"}[i%3]]
						if err := write(db.WithContext(observed(t.Context(), w)), tab, v); err != nil {
							t.Error(err)
							return
						}
						e := h.takeOf(t, w)
						if e.Outcome != rywpgx.Committed || !e.Placed() || !e.Sample.Pooled || e.Sample.Position.Timeline != 1 {
							t.Errorf("have %+v, want a position through a pooler", e)
							return
						}
						rows, err := checkedUntil(t.Context(), replica, atLeast(e.Sample.Position), "select v from "+tab+" where v = $1", v)
						if err != nil || rows != 1 {
							t.Errorf("replica at %s: have %d rows, %v, want 1", e.Sample.Position, rows, err)
							return
						}
					}
				})
			}
			all.Wait()

			s.wire, s.conns = &wire{}, 1
			single, v := s.ours(t, h), 100_000
			if n := trips(t, s, single.WithContext(observed(t.Context(), &who{})), writes["Transaction"], tab, &v); n != 3 {
				t.Errorf("have %d round trips, want 3", n)
			}
		})
	}
}

// takeOf returns the one event of an observer.
func (h *hooks) takeOf(t *testing.T, w *who) event {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []event
	rest := h.events[:0]
	for _, e := range h.events {
		if e.who == w {
			found = append(found, e)
		} else {
			rest = append(rest, e)
		}
	}
	h.events = rest
	if len(found) != 1 {
		t.Errorf("have %v, want one event", found)
		return event{}
	}
	return found[0]
}

// checkedUntil repeats a checked read until the server was far enough.
func checkedUntil(ctx context.Context, db *gorm.DB, accept rywpgx.Accept, query string, args ...any) (n int, err error) {
	p, err := db.DB()
	if err != nil {
		return 0, err
	}
	for {
		rows, _, err := rywpgx.Query(ctx, p, accept, query, args...)
		if errors.Is(err, rywpgx.ErrBehind) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return 0, err
		}
		for rows.Next() {
			n++
		}
		return n, errors.Join(rows.Err(), rows.Close())
	}
}
