package callbacks

import (
	"context"
	"database/sql"
	"runtime"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

func fakePool(t *testing.T) (*sql.DB, *fakepg.Server) {
	t.Helper()
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	cfg, err := pgx.ParseConfig(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	pool := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = pool.Close() })
	return pool, s
}

func begin(t *testing.T, pool *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := pool.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestEndOfATransaction(t *testing.T) {
	pool, s := fakePool(t)
	for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		tx := begin(t, pool)
		ended := foreign.of(context.Background(), tx)
		again := foreign.of(context.Background(), tx)
		before := s.Queries()
		if ended() || again() || isDone(tx) {
			t.Errorf("%s: ended before its end", name)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if !ended() || !again() || !isDone(tx) {
			t.Errorf("%s: not ended", name)
		}
		if have := s.Queries() - before; have != 1 {
			t.Errorf("%s: statements: have %d, want its own alone", name, have)
		}
	}
}

// One statement does, however many writes there are in the transaction.
func TestOneStatementForATransaction(t *testing.T) {
	pool, _ := fakePool(t)
	tx := begin(t, pool)
	foreign.of(context.Background(), tx)
	stmt := foreign.known(tx)
	foreign.of(context.Background(), tx)
	if stmt == nil || foreign.known(tx) != stmt {
		t.Error("prepared a second time")
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

func TestEndOfATransactionWhereNothingCanBePrepared(t *testing.T) {
	pool, _ := fakePool(t)
	tx := begin(t, pool)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ended := foreign.of(ctx, tx)
	if ended() {
		t.Error("ended before its end")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if !ended() {
		t.Error("not ended")
	}
}

// Nothing is kept for a transaction that nobody holds any more.
func TestEndingsForget(t *testing.T) {
	pool, _ := fakePool(t)
	var e endings
	func() {
		tx := begin(t, pool)
		e.of(context.Background(), tx)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}()
	for end := time.Now().Add(10 * time.Second); ; runtime.GC() {
		n := 0
		e.m.Range(func(any, any) bool { n++; return true })
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("have %d entries, want none", n)
		}
	}
}
