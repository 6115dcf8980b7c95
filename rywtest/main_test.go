//go:build linux || darwin

package rywtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// childVar makes the test binary a child that starts a cluster and waits to be
// killed; its value says how.
const childVar = "RYWTEST_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is for what must happen, however slow the machine is.
const patience = time.Minute

// brief is for what must not happen.
const brief = 200 * time.Millisecond

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a cluster with a table t.
func start(t testing.TB, o rywtest.Options) *rywtest.Cluster {
	t.Helper()
	c, err := rywtest.Start(within(t, patience), o)
	must(t, err)
	t.Cleanup(func() {
		for _, s := range c.Servers() {
			if t.Failed() {
				t.Logf("log of %s:\n%s", s.Name(), s.Log())
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	execute(t, c.Primary(), "create table t (n int primary key)")
	must(t, c.WaitReplicated(within(t, patience)))
	return c
}

func connect(t testing.TB, s *rywtest.Server) *pgx.Conn {
	t.Helper()
	conn, err := s.Conn(within(t, patience))
	must(t, err)
	t.Cleanup(func() { conn.Close(within(t, time.Second)) })
	return conn
}

func execute(t testing.TB, s *rywtest.Server, sql string) {
	t.Helper()
	conn := connect(t, s)
	_, err := conn.Exec(within(t, patience), sql)
	must(t, err)
	must(t, conn.Close(within(t, patience)))
}

func insert(t testing.TB, s *rywtest.Server, n int) {
	t.Helper()
	execute(t, s, fmt.Sprintf("insert into t values (%d)", n))
}

// text returns the single value of a query.
func text(t testing.TB, s *rywtest.Server, sql string) string {
	t.Helper()
	conn := connect(t, s)
	defer conn.Close(within(t, patience))
	value, err := ask(within(t, patience), conn, sql)
	must(t, err)
	return value
}

func ask(ctx context.Context, conn *pgx.Conn, sql string) (string, error) {
	var value string
	err := conn.QueryRow(ctx, "select ("+sql+")::text").Scan(&value)
	return value, err
}

// rows returns the content of t, "1 2 3".
func rows(t testing.TB, s *rywtest.Server) string {
	t.Helper()
	return text(t, s, "select coalesce(string_agg(n::text, ' ' order by n), '') from t")
}

func wantRows(t testing.TB, s *rywtest.Server, want string) {
	t.Helper()
	if have := rows(t, s); have != want {
		t.Fatalf("%s: have rows %q, want %q", s.Name(), have, want)
	}
}

func wantError(t testing.TB, err, target error, parts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("have error %v, want %v", err, target)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("have error %q, want %q in it", err, part)
		}
	}
}

// wantTimeout checks that something did not happen because time was up.
func wantTimeout(t testing.TB, err error, parts ...string) {
	t.Helper()
	wantError(t, err, context.DeadlineExceeded, parts...)
}
