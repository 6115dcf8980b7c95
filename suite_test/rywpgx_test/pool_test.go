package rywpgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

func startCluster(t *testing.T) *rywtest.Cluster {
	t.Helper()
	c, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: 1})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// Connections that were opened before are not what their owner thinks they are.
func TestBindReplacesOlderConnections(t *testing.T) {
	s, h := settings{wire: &wire{}}, newHooks()
	db := s.ours(t, nil)
	p := pool(t, db)
	held, err := p.Conn(t.Context())
	must(t, err)
	must(t, connector(t, db).Bind(h, 0))
	if err := connector(t, db).Bind(h, 0); !errors.Is(err, rywpgx.ErrBound) {
		t.Errorf("have %v, want %v", err, rywpgx.ErrBound)
	}
	_, err = held.ExecContext(observed(t.Context(), &who{}), "select txid_current()")
	must(t, err)
	must(t, held.Close())
	if e := h.take(); len(e) != 0 || h.admitted != 0 {
		t.Errorf("have %v and %d admitted, want the held connection as it was", e, h.admitted)
	}
	_, err = p.ExecContext(observed(t.Context(), &who{}), "select txid_current()")
	must(t, err)
	placed(t, only(t, h.take(), rywpgx.Committed))
	if h.admitted != 1 || s.wire.opened() != 2 {
		t.Errorf("have %d admitted of %d, want 1 of 2", h.admitted, s.wire.opened())
	}
}

func TestAdmissionRefuses(t *testing.T) {
	h := newHooks()
	db := settings{}.ours(t, h)
	h.refuse = errors.New("not that server")
	if err := db.Exec("select 1").Error; !errors.Is(err, h.refuse) {
		t.Errorf("have %v, want %v", err, h.refuse)
	}
	if n := pool(t, db).Stats().OpenConnections; n != 0 {
		t.Errorf("%d connections were left", n)
	}
}

// A pool given as Conn and another driver are used as they are.
func TestPoolsOfOthers(t *testing.T) {
	theirs, err := sql.Open("pgx", cluster.Primary().DSN())
	must(t, err)
	defer theirs.Close()
	for name, c := range map[string]postgres.Config{
		"a pool":   {Conn: theirs},
		"a driver": {DriverName: "pgx", DSN: cluster.Primary().DSN()},
	} {
		db, err := gorm.Open(rywpgx.New(c))
		must(t, err)
		if _, ok := rywpgx.Of(pool(t, db)); ok {
			t.Errorf("%s: is taken for one of a connector", name)
		}
	}
	cfg, err := pgx.ParseConfig(cluster.Primary().DSN())
	must(t, err)
	own, err := rywpgx.NewConnector(cfg)
	must(t, err)
	opened := sql.OpenDB(own)
	defer opened.Close()
	db, err := gorm.Open(rywpgx.New(postgres.Config{Conn: opened}))
	must(t, err)
	if have := connector(t, db); have != own {
		t.Error("the pool's connector is another")
	}
	if want := fmt.Sprintf("%s:%d", cluster.Primary().Host(), cluster.Primary().Port()); own.Name() != want {
		t.Errorf("name: have %s, want %s", own.Name(), want)
	}
	conn, err := own.Dial(t.Context())
	must(t, err)
	must(t, conn.Close(t.Context()))
}

func TestOpenErrorsKeepThePasswordSecret(t *testing.T) {
	for _, dsn := range []string{"postgres://u:hunter2@[bad/x", "host=x password=hunter2 port=none", "password=hunter2 sslmode=nonsense"} {
		_, theirs := gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard})
		_, ours := gorm.Open(rywpgx.Open(dsn), &gorm.Config{Logger: logger.Discard})
		if ours == nil || ours.Error() != theirs.Error() || strings.Contains(ours.Error(), "hunter2") {
			t.Errorf("have %v, want %v", ours, theirs)
		}
	}
}

// Whoever made a statement in a transaction learns of its commit, once, also if
// somebody else began it.
func TestEveryObserverOfATransactionIsTold(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	begins, writes, reads := &who{}, &who{}, &who{}
	tx, err := p.BeginTx(observed(t.Context(), begins), nil)
	must(t, err)
	for i := range 3 {
		_, err = tx.ExecContext(observed(t.Context(), writes), "insert into "+tab+" (v) values ($1)", i)
		must(t, err)
	}
	var n int
	must(t, tx.QueryRowContext(observed(t.Context(), reads), "select count(*) from "+tab).Scan(&n))
	_, err = tx.ExecContext(t.Context(), "select 1")
	must(t, err)
	if e := h.take(); len(e) != 0 {
		t.Errorf("before the commit: have %v, want nothing", e)
	}
	must(t, tx.Commit())
	told := map[*who]int{}
	for _, e := range h.take() {
		told[e.who]++
		placed(t, e)
	}
	if len(told) != 3 || told[begins]+told[writes]+told[reads] != 3 {
		t.Errorf("have %v, want each of three once", told)
	}
	_, err = p.ExecContext(t.Context(), "select 1")
	must(t, err)
	if e := h.take(); len(e) != 0 {
		t.Errorf("behind it: have %v, want nothing", e)
	}
}

func TestWhatWasNotCommitted(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	ctx := observed(t.Context(), &who{})
	_, err := p.ExecContext(ctx, "insert into "+tab+" (v) values (1)")
	must(t, err)
	h.take()
	insert := "insert into " + tab + " (v) values (1)"
	for name, do := range map[string]func() error{
		"a duplicate": func() error {
			_, err := p.ExecContext(ctx, insert)
			return err
		},
		"a duplicate, with rows": func() error {
			_, err := p.QueryContext(ctx, insert+" returning $1::int", 1)
			return err
		},
		"a rollback": func() error {
			tx, err := p.BeginTx(ctx, nil)
			must(t, err)
			_, err = tx.Exec("insert into " + tab + " (v) values (9)")
			return errors.Join(err, tx.Rollback(), errors.New("as wanted"))
		},
		"the commit of a failed transaction": func() error {
			tx, err := p.BeginTx(ctx, nil)
			must(t, err)
			_, _ = tx.Exec(insert)
			err = tx.Commit()
			if !errors.Is(err, pgx.ErrTxCommitRollback) {
				t.Errorf("have %v, want %v", err, pgx.ErrTxCommitRollback)
			}
			return err
		},
	} {
		if do() == nil {
			t.Errorf("%s: no error", name)
		}
		placed(t, only(t, h.take(), rywpgx.Undone))
	}
	// Nothing was sent.
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.ExecContext(cancelled, insert)
	if err == nil {
		t.Error("no error")
	}
	if e := h.take(); len(e) != 0 {
		t.Errorf("have %v, want nothing", e)
	}
	// Nothing was written.
	tx, err := p.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	must(t, err)
	var n int
	must(t, tx.QueryRow("select count(*) from "+tab).Scan(&n))
	must(t, tx.Commit())
	if e := only(t, h.take(), rywpgx.Read); e.Placed() {
		t.Errorf("have %v, want no position: nobody wants it", e)
	}
}

// A deferred constraint raises its error in COMMIT.
func TestDeferredConstraint(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	ctx := observed(t.Context(), &who{})
	_, err := p.ExecContext(t.Context(), "alter table "+tab+" add unique (t) deferrable initially deferred")
	must(t, err)
	tx, err := p.BeginTx(ctx, nil)
	must(t, err)
	_, err = tx.Exec("insert into " + tab + " (t) values ('a'), ('a')")
	must(t, err)
	if err := tx.Commit(); err == nil {
		t.Error("no error")
	}
	placed(t, only(t, h.take(), rywpgx.Undone))
}

// A deadline of the caller's that passes while the server works.
func TestDeadlineLeavesTheOutcomeOpen(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	ctx, cancel := context.WithTimeout(observed(t.Context(), &who{}), 500_000_000)
	defer cancel()
	_, err := p.ExecContext(ctx, "insert into "+tab+" (v) select 1 from pg_sleep(30)")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have %v, want %v", err, context.DeadlineExceeded)
	}
	only(t, h.take(), rywpgx.Indeterminate)
}

// The caller's context may end with the commit: the position is still taken.
func TestContextThatEndsWithTheCommit(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	ctx, cancel := context.WithCancel(observed(t.Context(), &who{}))
	rows, err := p.QueryContext(ctx, "insert into "+tab+" (v) values (1) returning v")
	must(t, err)
	for rows.Next() {
	}
	must(t, rows.Close())
	cancel()
	placed(t, only(t, h.take(), rywpgx.Committed))
}

// rewriter sends another text than the one it was called with.
type rewriter struct{ text string }

func (r rewriter) RewriteQuery(_ context.Context, _ *pgx.Conn, _ string, args []any) (string, []any, error) {
	return r.text, args, nil
}

// What is sent in place of a read may be anything.
func TestRewrittenReadsAreWrites(t *testing.T) {
	h, tab := newHooks(), table(t)
	p := pool(t, settings{}.ours(t, h))
	ctx := observed(t.Context(), &who{})
	_, err := p.ExecContext(ctx, "select 1", rewriter{"insert into " + tab + " (v) values (1)"})
	must(t, err)
	placed(t, only(t, h.take(), rywpgx.Committed))
	_, _, err = rywpgx.Query(ctx, p, anything, "select 1", rewriter{"insert into " + tab + " (v) values (2) returning v"})
	if !errors.Is(err, rywpgx.ErrUnchecked) {
		t.Errorf("have %v, want %v", err, rywpgx.ErrUnchecked)
	}
}

// An application may open more connections with the configuration of one, to
// listen on, say. They are not followed, and do not confuse the one that is.
func TestConnectionsWithACopyOfTheConfiguration(t *testing.T) {
	h, tab := newHooks(), table(t)
	s := settings{wire: &wire{}, params: "default_query_exec_mode=exec"}
	db := s.ours(t, h)
	ctx := observed(t.Context(), &who{floor: true})
	must(t, onPgx(db.WithContext(ctx), func(ctx context.Context, c *pgx.Conn) error {
		other, err := pgx.ConnectConfig(ctx, c.Config())
		if err != nil {
			return err
		}
		defer other.Close(ctx)
		insert := "insert into " + tab + " (v) values ($1)"
		for i := range 3 {
			if _, err := other.Exec(ctx, insert, i); err != nil {
				return err
			}
		}
		if e := h.take(); len(e) != 0 {
			t.Errorf("have %v, want nothing", e)
		}
		for i := range 3 {
			if n := s.wire.count(func() { _, err = c.Exec(ctx, insert, 10+i) }); err != nil || n != 1 {
				t.Errorf("have %v and %d round trips, want 1", err, n)
			}
			placed(t, only(t, h.take(), rywpgx.Committed))
		}
		return nil
	}))
}
