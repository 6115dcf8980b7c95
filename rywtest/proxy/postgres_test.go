package proxy_test

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// behind starts a server with a table t, and a proxy before it.
func behind(t testing.TB, delay time.Duration) (*rywtest.Server, *proxy.Proxy) {
	t.Helper()
	c, err := rywtest.Start(patient(t), rywtest.Options{Replicas: rywtest.NoReplicas})
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := proxy.New(net.JoinHostPort(c.Primary().Host(), strconv.Itoa(c.Primary().Port())), proxy.Options{Delay: delay})
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	conn := connect(t, c.Primary().DSN())
	_, err = conn.Exec(patient(t), "create table t (n int)")
	must(t, err)
	return c.Primary(), p
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(patient(t), dsn)
	must(t, err)
	t.Cleanup(func() { conn.Close(patient(t)) })
	return conn
}

func through(t testing.TB, p *proxy.Proxy) *pgx.Conn {
	t.Helper()
	return connect(t, "postgres://postgres@"+p.Addr()+"/postgres?sslmode=disable")
}

func TestRoundTripsOfQueries(t *testing.T) {
	_, p := behind(t, 0)
	conn := through(t, p)
	for name, test := range map[string]struct {
		run  func() error
		want uint64
	}{
		"a simple query": {func() error {
			_, err := conn.Exec(patient(t), "select 1", pgx.QueryExecModeSimpleProtocol)
			return err
		}, 1},
		"an unprepared query": {func() error {
			_, err := conn.Exec(patient(t), "select $1::int", pgx.QueryExecModeExec, 1)
			return err
		}, 1},
		"a query to be described": {func() error {
			_, err := conn.Exec(patient(t), "select $1::int", pgx.QueryExecModeDescribeExec, 1)
			return err
		}, 2},
		"a batch": {func() error {
			var b pgx.Batch
			for range 10 {
				b.Queue("select 1")
			}
			_, err := conn.Exec(patient(t), "deallocate all")
			must(t, err)
			return conn.SendBatch(patient(t), &b).Close()
		}, 3}, // with "deallocate all" and the preparation
	} {
		before := p.Counters()
		must(t, test.run())
		if have := p.Counters().RoundTrips - before.RoundTrips; have != test.want {
			t.Errorf("%s: have %d round trips, want %d", name, have, test.want)
		}
	}
}

func TestDelayOfQueries(t *testing.T) {
	const delay = 5 * time.Millisecond
	_, p := behind(t, delay)
	conn := through(t, p)
	begin := time.Now()
	must(t, conn.Ping(patient(t)))
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("a ping took %v, want %v or more", took, 2*delay)
	}
}

// A client that loses the connection while it commits cannot know: the two hooks
// make the two truths.
func TestCommitWithUnknownOutcome(t *testing.T) {
	s, p := behind(t, time.Millisecond)
	isCommit := func(msgType byte, payload []byte) bool {
		return msgType == 'Q' && bytes.HasPrefix(payload, []byte("commit"))
	}
	for name, test := range map[string]struct {
		hook func(func(byte, []byte) bool)
		want int
	}{
		"lost message": {p.CutOn, 0},
		"lost answer":  {p.CutAnswer, 1},
	} {
		t.Run(name, func(t *testing.T) {
			direct := connect(t, s.DSN())
			_, err := direct.Exec(patient(t), "truncate t")
			must(t, err)
			test.hook(isCommit)
			defer test.hook(nil)
			conn := through(t, p)
			tx, err := conn.Begin(patient(t))
			must(t, err)
			_, err = tx.Exec(patient(t), "insert into t values (1)")
			must(t, err)
			if err := tx.Commit(patient(t)); err == nil {
				t.Fatal("the commit came back without an error")
			}
			awaitIdle(t, direct)
			var have int
			must(t, direct.QueryRow(patient(t), "select count(*) from t").Scan(&have))
			if have != test.want {
				t.Errorf("have %d rows, want %d", have, test.want)
			}
		})
	}
}

// awaitIdle waits until no other client is connected.
func awaitIdle(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ctx := patient(t)
	for others := 1; others > 0; <-tick.C {
		must(t, conn.QueryRow(ctx, `select count(*) from pg_stat_activity
			where backend_type = 'client backend' and pid <> pg_backend_pid() and query like '%commit%'`).Scan(&others))
	}
}
