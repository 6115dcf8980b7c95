// Package doctor_test has the doctor examine real servers that lack one thing each.
package doctor_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/doctor"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

var cluster *rywtest.Cluster

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	if cluster, err = rywtest.Start(ctx, rywtest.Options{Replicas: 2}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := cluster.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs statements on a server.
func run(t testing.TB, s *rywtest.Server, statements ...string) {
	t.Helper()
	conn, err := s.Conn(context.Background())
	must(t, err)
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// one is a number that a server answers with.
func one(t testing.TB, s *rywtest.Server, sql string) (n int64) {
	t.Helper()
	conn, err := s.Conn(t.Context())
	must(t, err)
	defer conn.Close(context.Background())
	must(t, conn.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

// as is a server's connection string for a role, with more parameters.
func as(t testing.TB, s *rywtest.Server, role string, params ...string) string {
	t.Helper()
	u, err := url.Parse(s.DSN())
	must(t, err)
	if role != "" {
		u.User = url.UserPassword(role, secret)
	}
	if len(params) > 0 {
		u.RawQuery += "&" + strings.Join(params, "&")
	}
	return u.String()
}

const secret = "hunter2"

var roles int

// role makes a role with nothing but what it was told, until the end of the test.
func role(t testing.TB, settings ...string) string {
	t.Helper()
	roles++
	name := fmt.Sprintf("app_%d", roles)
	statements := []string{"create role " + name + " login password '" + secret + "'"}
	for _, s := range settings {
		statements = append(statements, fmt.Sprintf(s, name))
	}
	run(t, cluster.Primary(), statements...)
	t.Cleanup(func() { run(t, cluster.Primary(), "drop owned by "+name, "drop role "+name) })
	replicated(t)
	return name
}

func replicated(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	must(t, cluster.WaitReplicated(ctx))
}

// examine has the doctor look.
func examine(t testing.TB, o doctor.Options) *doctor.Report {
	t.Helper()
	if o.Wait == 0 {
		o.Wait = 20 * time.Second
	}
	r, err := doctor.Run(t.Context(), o)
	must(t, err)
	return r
}

// usual are the options of a good set-up for a role.
func usual(t testing.TB, role string) doctor.Options {
	t.Helper()
	return doctor.Options{
		Primary: as(t, cluster.Primary(), role), Replicas: []string{as(t, cluster.Replica(0), role), as(t, cluster.Replica(1), role)},
	}
}

// want has the report say, of a server, what is bad and how to change it, and nothing
// as bad of any other check.
func want(t testing.TB, r *doctor.Report, level doctor.Level, server, check, found, fix string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Level == level && strings.HasPrefix(f.Server, server) && f.Check == check && strings.Contains(f.Found, found) {
			if level != doctor.OK && f.Means == "" || !strings.Contains(f.Fix, fix) {
				t.Errorf("have meaning %q and fix %q, want a meaning and %q", f.Means, f.Fix, fix)
			}
			return
		}
	}
	t.Errorf("not found: %s %s %s %q; have\n%s", level, server, check, found, text(t, r))
}

// none fails if a level was given for anything but some checks.
func none(t testing.TB, r *doctor.Report, level doctor.Level, but ...string) {
	t.Helper()
findings:
	for _, f := range r.Findings {
		for _, b := range but {
			if f.Check == b {
				continue findings
			}
		}
		if f.Level == level {
			t.Errorf("found, and should not be: %s %s %s: %s", level, f.Server, f.Check, f.Found)
		}
	}
}

func text(t testing.TB, r *doctor.Report) string {
	t.Helper()
	var b strings.Builder
	must(t, r.WriteText(&b))
	return b.String()
}
