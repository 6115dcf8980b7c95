package facts_test

import (
	"context"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

// pool starts a PgBouncer in transaction mode before a server, for the length of the
// spec or container, and returns how to connect to it.
func pool(ctx context.Context, s *rywtest.Server) (dsn string) {
	GinkgoHelper()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		Skip("pgbouncer is not in the PATH")
	}
	dir, err := os.MkdirTemp("", "facts-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	Expect(os.Chmod(dir, 0o755)).To(Succeed())
	port := freePort()
	config := filepath.Join(dir, "pgbouncer.ini")
	Expect(os.WriteFile(config, fmt.Appendf(nil, `[databases]
postgres = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
`, s.Port(), port), 0o644)).To(Succeed())
	begin(program, config)
	dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	Eventually(func() error {
		c, err := pgx.Connect(ctx, dsn)
		if err == nil {
			err = c.Close(ctx)
		}
		return err
	}).Should(Succeed())
	return dsn
}

// begin runs a program until the end of the spec or container, or of this process:
// its shell sees the pipe close.
func begin(program, arg string) {
	GinkgoHelper()
	cmd := osexec.Command("/bin/sh", "-c", `"$0" "$1" >/dev/null 2>&1 </dev/null & read -r _; kill "$!"; wait`, program, arg)
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential("nobody")}
	}
	life, err := cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(life.Close()).To(Succeed())
		_ = cmd.Wait() // the program was killed
	})
}

func credential(name string) *syscall.Credential {
	GinkgoHelper()
	u, err := user.Lookup(name)
	Expect(err).NotTo(HaveOccurred())
	uid, err := strconv.Atoi(u.Uid)
	Expect(err).NotTo(HaveOccurred())
	gid, err := strconv.Atoi(u.Gid)
	Expect(err).NotTo(HaveOccurred())
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func freePort() int {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

var _ = Describe("Through a connection pooler", Ordered, func() {
	var (
		own    *rywtest.Cluster
		s      *rywtest.Server
		pooled *pgx.Conn
	)
	BeforeAll(func(ctx SpecContext) {
		own = startCluster(ctx, rywtest.Options{Replicas: 1})
		s = own.Replica(0)
		pooled = dialDSN(ctx, pool(ctx, s))
	})

	It("a server process is not the one that the protocol announced", func(ctx SpecContext) {
		const query = "select pg_backend_pid()"
		Expect(get[int64](ctx, pooled, query)).NotTo(BeEquivalentTo(pooled.PgConn().PID()))
		direct := dial(ctx, s)
		Expect(get[int64](ctx, direct, query)).To(BeEquivalentTo(direct.PgConn().PID()))
	})

	It("a connection survives the server's crash without an error", func(ctx SpecContext) {
		lived, direct := lifeOf(ctx, s), dial(ctx, s)
		Expect(get[bool](ctx, pooled, "select pg_is_in_recovery()")).To(BeTrue())
		Expect(s.KillBackend(ctx)).To(Succeed())
		expectOnlyReset(ctx, s, lived)
		Expect(get[bool](ctx, pooled, "select pg_is_in_recovery()")).To(BeTrue())
		Expect(direct.Ping(ctx)).NotTo(Succeed())
	})
})
