package rywpgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// atLeast accepts positions at or beyond one.
func atLeast(want token.Position) rywpgx.Accept {
	return func(s watcher.Sample) error {
		if s.Position.Compare(want) < 0 {
			return fmt.Errorf("at %s, want %s", s.Position, want)
		}
		return nil
	}
}

// A checked read that returns rows has read what it asked for, whatever the
// server's state was before; the others return no row.
func TestCheckedReads(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			tab, h := table(t), newHooks()
			s.server = cluster.Replica(0)
			db := s.ours(t, h)
			must(t, cluster.Replica(0).PauseReplay(t.Context()))
			defer func() { must(t, cluster.Replica(0).ResumeReplay(context.Background())) }()
			must(t, settings{}.plain(t).Exec("insert into "+tab+" (v) values (1)").Error)
			want := position(t)
			read := func() (int, error) {
				var n int
				rows, _, err := rywpgx.Query(t.Context(), db.ConnPool, atLeast(want), "select v from "+tab+" where v >= $1", 0)
				if err != nil {
					return 0, err
				}
				defer rows.Close()
				for rows.Next() {
					n++
				}
				return n, rows.Err()
			}
			one := func() (v int, err error) {
				row, _, err := rywpgx.QueryRow(t.Context(), db.ConnPool, atLeast(want), "select v from "+tab+" where v >= $1", 0)
				if err != nil {
					return 0, err
				}
				return v, row.Scan(&v)
			}
			for name, read := range map[string]func() (int, error){"Query": read, "QueryRow": one} {
				for range 2 {
					if n, err := read(); !errors.Is(err, rywpgx.ErrBehind) {
						t.Errorf("%s, paused: have %d, %v, want %v", name, n, err, rywpgx.ErrBehind)
					}
				}
			}
			must(t, cluster.Replica(0).ResumeReplay(t.Context()))
			must(t, cluster.WaitReplicated(t.Context()))
			for name, read := range map[string]func() (int, error){"Query": read, "QueryRow": one} {
				if n, err := read(); n != 1 || err != nil {
					t.Errorf("%s: have %d, %v, want 1", name, n, err)
				}
			}
			if n := pool(t, db).Stats().InUse; n != 0 {
				t.Errorf("%d connections were not given back", n)
			}
		})
	}
}

// What a server has not replayed yet may be the table itself: that must not look
// as if there was none.
func TestCheckedReadOfATableThatIsNotThereYet(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			h := newHooks()
			s.server = cluster.Replica(0)
			db := s.ours(t, h)
			must(t, cluster.WaitReplicated(t.Context()))
			must(t, cluster.Replica(0).PauseReplay(t.Context()))
			defer func() { must(t, cluster.Replica(0).ResumeReplay(context.Background())) }()
			tables++
			tab := fmt.Sprintf("late_%d", tables)
			must(t, settings{}.plain(t).Exec("create table "+tab+" (v int)").Error)
			want := position(t)
			_, _, err := rywpgx.Query(t.Context(), db.ConnPool, atLeast(want), "select v from "+tab+" where v > $1", 0)
			if !errors.Is(err, rywpgx.ErrBehind) {
				t.Errorf("Query: have %v, want %v", err, rywpgx.ErrBehind)
			}
			_, _, err = rywpgx.QueryRow(t.Context(), db.ConnPool, atLeast(want), "select v from "+tab+" where v > $1", 0)
			if !errors.Is(err, rywpgx.ErrBehind) {
				t.Errorf("QueryRow: have %v, want %v", err, rywpgx.ErrBehind)
			}
			must(t, cluster.Replica(0).ResumeReplay(t.Context()))
			must(t, cluster.WaitReplicated(t.Context()))
			rows, _, err := rywpgx.Query(t.Context(), db.ConnPool, atLeast(want), "select v from "+tab+" where v > $1", 0)
			must(t, err)
			must(t, rows.Close())
			_, _, err = rywpgx.Query(t.Context(), db.ConnPool, atLeast(want), "select missing from "+tab+" where v > $1", 0)
			if err == nil || errors.Is(err, rywpgx.ErrBehind) {
				t.Errorf("have %v, want the server's error", err)
			}
		})
	}
}

func TestReadsThatCannotBeChecked(t *testing.T) {
	query := func(db interface {
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	}, q string,
	) error {
		rows, err := db.QueryContext(t.Context(), q)
		if err == nil {
			err = rows.Close()
		}
		return err
	}
	tab, h := table(t), newHooks()
	bound, unbound, plain := settings{}.ours(t, h), settings{}.ours(t, nil), settings{}.plain(t)
	must(t, query(pool(t, bound), "select 1"))
	for name, c := range map[string]struct {
		pool  *sql.DB
		query string
	}{
		"a foreign pool":         {pool(t, plain), "select 1"},
		"a pool not bound":       {pool(t, unbound), "select 1"},
		"something that writes":  {pool(t, bound), "insert into " + tab + " (v) values (1) returning v"},
		"something that may":     {pool(t, bound), "select nextval('" + tab + "_id_seq')"},
		"pgx's own begin of one": {pool(t, bound), "begin"},
	} {
		_, _, err := rywpgx.Query(t.Context(), c.pool, anything, c.query)
		if !errors.Is(err, rywpgx.ErrUnchecked) {
			t.Errorf("%s: have %v, want %v", name, err, rywpgx.ErrUnchecked)
		}
	}
}

// A replica that is promoted under an open connection is no proof of anything any
// more, until everything was asked again.
func TestCheckedReadsSurvivePromotion(t *testing.T) {
	c := startCluster(t)
	s, h := settings{server: c.Replica(0), conns: 1}, newHooks()
	db := s.ours(t, h)
	ask := func() (watcher.Sample, error) {
		rows, s, err := rywpgx.Query(t.Context(), db.ConnPool, anything, "select 1")
		if err == nil {
			err = rows.Close()
		}
		return s, err
	}
	first, err := ask()
	must(t, err)
	must(t, c.Replica(0).Promote(t.Context()))
	if _, err := ask(); !errors.Is(err, rywpgx.ErrUnchecked) {
		t.Errorf("have %v, want %v", err, rywpgx.ErrUnchecked)
	}
	second, err := ask()
	must(t, err)
	if first.Position.Timeline != 1 || !first.Standby || second.Position.Timeline != 2 || second.Standby {
		t.Errorf("have %+v, then %+v", first, second)
	}
	if h.admitted != 1 {
		t.Errorf("have %d connections, want one", h.admitted)
	}
}

// A stream of checked reads against a replica that is written to never shows less
// than what was asked for.
func TestCheckedReadsUnderLoad(t *testing.T) {
	tab, h := table(t), newHooks()
	w := &who{}
	primary := settings{}.ours(t, h).WithContext(observed(t.Context(), w))
	replica := settings{server: cluster.Replica(0)}.ours(t, newHooks())
	must(t, primary.Exec("insert into "+tab+" (v) values (0)").Error)
	must(t, cluster.WaitReplicated(t.Context()))
	h.take()
	var behind, read atomic.Int64
	for v := 1; v <= 300; v++ {
		must(t, primary.Exec("update "+tab+" set v = ?", v).Error)
		want := placed(t, only(t, h.take(), rywpgx.Committed))
		for {
			rows, _, err := rywpgx.Query(t.Context(), replica.ConnPool, atLeast(want), "select v from "+tab)
			if errors.Is(err, rywpgx.ErrBehind) {
				behind.Add(1)
				continue
			}
			must(t, err)
			var have int
			rows.Next()
			must(t, rows.Scan(&have))
			must(t, rows.Close())
			if have < v {
				t.Fatalf("have %d, want %d", have, v)
			}
			read.Add(1)
			break
		}
	}
	t.Logf("%d reads, %d of them too early", read.Load(), behind.Load())
}
