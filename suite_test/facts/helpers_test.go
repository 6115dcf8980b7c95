package facts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// dial connects to a server for the length of the spec or container. Every
// statement is one message of the simple protocol.
func dial(ctx context.Context, s *rywtest.Server) *pgx.Conn {
	GinkgoHelper()
	return dialDSN(ctx, s.DSN())
}

func dialAs(ctx context.Context, s *rywtest.Server, user string) *pgx.Conn {
	GinkgoHelper()
	return dialDSN(ctx, s.DSNAs(user))
}

func dialDSN(ctx context.Context, dsn string) *pgx.Conn {
	GinkgoHelper()
	conn := connect(ctx, dsn)
	DeferCleanup(func(ctx SpecContext) { _ = conn.Close(ctx) }) // its server may be gone
	return conn
}

func connect(ctx context.Context, dsn string) *pgx.Conn {
	GinkgoHelper()
	config, err := pgx.ParseConfig(dsn)
	Expect(err).NotTo(HaveOccurred())
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	Expect(err).NotTo(HaveOccurred())
	return conn
}

// on calls f with a new connection.
func on[T any](ctx context.Context, s *rywtest.Server, f func(c *pgx.Conn) T) T {
	GinkgoHelper()
	c := connect(ctx, s.DSN())
	defer c.Close(ctx)
	return f(c)
}

func exec(ctx context.Context, c *pgx.Conn, sql string, args ...any) {
	GinkgoHelper()
	_, err := c.Exec(ctx, sql, args...)
	Expect(err).NotTo(HaveOccurred(), sql)
}

// get returns the one column of the one row.
func get[T any](ctx context.Context, c *pgx.Conn, sql string, args ...any) (value T) {
	GinkgoHelper()
	Expect(c.QueryRow(ctx, sql, args...).Scan(&value)).To(Succeed(), sql)
	return value
}

var lastID atomic.Int64

func newID() int64 { return lastID.Add(1) }

func insert(ctx context.Context, c *pgx.Conn, id int64) {
	GinkgoHelper()
	exec(ctx, c, "insert into facts (id) values ($1)", id)
}

func visible(ctx context.Context, c *pgx.Conn, id int64) bool {
	GinkgoHelper()
	return get[bool](ctx, c, "select exists (select from facts where id = $1)", id)
}

// write commits a new row and returns it with a position that covers it.
func write(ctx context.Context, c *pgx.Conn) (id int64, pos rywtest.LSN) {
	GinkgoHelper()
	id = newID()
	insert(ctx, c, id)
	return id, roundDown(insertLSN(ctx, c))
}

// SQL of the position functions as numbers.
const (
	insertSQL  = "(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
	writtenSQL = "(pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
	flushSQL   = "(pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint"
	replaySQL  = "(pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"
	receiveSQL = "(pg_last_wal_receive_lsn() - '0/0'::pg_lsn)::bigint"
)

func lsn(ctx context.Context, c *pgx.Conn, sql string) rywtest.LSN {
	GinkgoHelper()
	return rywtest.LSN(get[int64](ctx, c, "select "+sql))
}

func insertLSN(ctx context.Context, c *pgx.Conn) rywtest.LSN  { return lsn(ctx, c, insertSQL) }
func flushLSN(ctx context.Context, c *pgx.Conn) rywtest.LSN   { return lsn(ctx, c, flushSQL) }
func replayLSN(ctx context.Context, c *pgx.Conn) rywtest.LSN  { return lsn(ctx, c, replaySQL) }
func receiveLSN(ctx context.Context, c *pgx.Conn) rywtest.LSN { return lsn(ctx, c, receiveSQL) }

// awaitReplay waits until a standby has replayed all before a position.
func awaitReplay(ctx context.Context, c *pgx.Conn, want rywtest.LSN) {
	GinkgoHelper()
	Eventually(replayLSN).WithArguments(ctx, c).Should(BeNumerically(">=", want))
}

func replicated(ctx context.Context, c *rywtest.Cluster) {
	GinkgoHelper()
	Expect(c.WaitReplicated(ctx)).To(Succeed())
}

// pause has a standby receive WAL without replaying it, until resume or the end of
// the spec.
func pause(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.PauseReplay(ctx)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { resume(ctx, s) })
}

func resume(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.ResumeReplay(ctx)).To(Succeed())
}

// holdCommits has a standby replay everything up to the next commit record and
// stop there, until the release or the end of the spec.
func holdCommits(ctx context.Context, s *rywtest.Server) (release func(context.Context)) {
	GinkgoHelper()
	Expect(s.SetApplyDelay(ctx, time.Hour)).To(Succeed())
	release = func(ctx context.Context) { Expect(s.SetApplyDelay(ctx, 0)).To(Succeed()) }
	DeferCleanup(func(ctx SpecContext) { release(ctx) })
	return release
}

// alterSystem sets a setting until reset or the end of the spec, and returns when
// the server's processes go by it.
func alterSystem(ctx context.Context, s *rywtest.Server, name, value string) (reset func(context.Context)) {
	GinkgoHelper()
	before := setting(ctx, s, name)
	set := func(ctx context.Context, command, want string) {
		GinkgoHelper()
		change(ctx, s, command, name, want)
		// The older processes were told before a new one began, and one of them, the
		// checkpointer, reads its settings before it obeys this.
		on(ctx, s, func(c *pgx.Conn) any { exec(ctx, c, "checkpoint"); return nil })
	}
	set(ctx, fmt.Sprintf("alter system set %s = '%s'", name, value), value)
	reset = func(ctx context.Context) { set(ctx, "alter system reset "+name, before) }
	DeferCleanup(func(ctx SpecContext) { reset(ctx) })
	return reset
}

// change changes a setting and returns when new connections go by it.
func change(ctx context.Context, s *rywtest.Server, command, name, want string) {
	GinkgoHelper()
	on(ctx, s, func(c *pgx.Conn) any {
		exec(ctx, c, command)
		exec(ctx, c, "select pg_reload_conf()")
		return nil
	})
	Eventually(setting).WithArguments(ctx, s, name).Should(Equal(want))
}

// setting is what a new connection goes by.
func setting(ctx context.Context, s *rywtest.Server, name string) string {
	GinkgoHelper()
	return on(ctx, s, func(c *pgx.Conn) string { return get[string](ctx, c, "select current_setting($1)", name) })
}

// message sends several statements as one message of the simple protocol.
func message(ctx context.Context, c *pgx.Conn, sql string) ([]*pgconn.Result, error) {
	return c.PgConn().Exec(ctx, sql).ReadAll()
}

// text is the one column of a result's one row.
func text(r *pgconn.Result) string {
	GinkgoHelper()
	Expect(r.Rows).To(HaveLen(1))
	return string(r.Rows[0][0])
}

// packet sends statements as messages of their own in one packet, and returns
// the first column of the last row of each.
func packet(ctx context.Context, c *pgx.Conn, statements ...string) []string {
	GinkgoHelper()
	front := c.PgConn().Frontend()
	for _, sql := range statements {
		front.SendQuery(&pgproto3.Query{String: sql})
	}
	Expect(front.Flush()).To(Succeed())
	values := make([]string, len(statements))
	for i := 0; i < len(statements); {
		m, err := c.PgConn().ReceiveMessage(ctx)
		Expect(err).NotTo(HaveOccurred())
		switch m := m.(type) {
		case *pgproto3.DataRow:
			values[i] = string(slices.Clone(m.Values[0]))
		case *pgproto3.ErrorResponse:
			Fail(statements[i] + ": " + m.Message)
		case *pgproto3.ReadyForQuery:
			i++
		}
	}
	return values
}

// code is the SQLSTATE of an error, empty for none.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// async runs f beside the spec, which must receive the result.
func async[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() {
		defer GinkgoRecover()
		done <- f()
	}()
	return done
}

// await receives the result of async.
func await[T any](done <-chan T) (result T) {
	GinkgoHelper()
	Eventually(done).Should(Receive(&result))
	return result
}

// awaitWait waits until a server process waits for something.
func awaitWait(ctx context.Context, c *pgx.Conn, pid uint32, event string) {
	GinkgoHelper()
	Eventually(func() string {
		return get[string](ctx, c, "select coalesce(max(wait_event), '') from pg_stat_activity where pid = $1", int64(pid))
	}).Should(Equal(event))
}
