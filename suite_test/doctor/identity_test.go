package doctor_test

import (
	"fmt"
	"io"
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

	"github.com/gorm-ryw/gorm-ryw/internal/doctor"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// A real pooler in front of a replica is recognised, and in front of the primary.
func TestPooler(t *testing.T) {
	o := usual(t, "")
	o.Replicas[1] = bouncer(t, cluster.Replica(1))
	r := examine(t, o)
	want(t, r, doctor.Fail, "replica 2", "identity", "a connection pooler", "the server's own address")
	none(t, r, doctor.Fail, "identity")

	o = usual(t, "")
	o.Primary = bouncer(t, cluster.Primary())
	r = examine(t, o)
	want(t, r, doctor.Warn, "primary", "identity", "a connection pooler", "the server's own address")
	none(t, r, doctor.Fail)
}

// So is an address behind which connections go to one replica or the other.
func TestBalancer(t *testing.T) {
	o := usual(t, "")
	o.Replicas = []string{balancer(t, cluster.Replica(0), cluster.Replica(1))}
	r := examine(t, o)
	want(t, r, doctor.Fail, "replica 1", "identity", "a balancer: 2 servers answer", "the server's own address")
	none(t, r, doctor.Fail, "identity")

	o = usual(t, "")
	o.Primary = balancer(t, cluster.Primary(), cluster.Replica(0))
	r = examine(t, o)
	want(t, r, doctor.Fail, "primary", "identity", "2 servers answer", "the server's own address")
}

// balancer is an address that leads to servers in turn.
func balancer(t *testing.T, servers ...*rywtest.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", servers[i%len(servers)].Port()))
			if err != nil {
				client.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				all.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // ends with either
					way[0].Close()
					way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", l.Addr())
}

// bouncer starts a PgBouncer in transaction mode in front of a server.
func bouncer(t *testing.T, s *rywtest.Server) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("pgbouncer is not in the PATH")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
postgres = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
`, s.Port(), port), 0o644))
	cmd := exec.Command(program, config)
	if os.Getuid() == 0 { // it refuses to run as root
		u, err := user.Lookup("nobody")
		must(t, err)
		uid, err := strconv.Atoi(u.Uid)
		must(t, err)
		gid, err := strconv.Atoi(u.Gid)
		must(t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
	}
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", addr)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
