package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

// inside is a handle on a transaction that the application began by itself.
func (a *app) inside(ctx context.Context, tx *sql.Tx) *gorm.DB {
	db := a.db.WithContext(ctx).Session(&gorm.Session{Initialized: true})
	db.Statement.ConnPool = tx
	return db
}

func (a *app) begin() *sql.Tx {
	a.t.Helper()
	pool, err := a.db.DB()
	if err != nil {
		a.t.Fatal(err)
	}
	tx, err := pool.BeginTx(context.Background(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return tx
}

// A transaction counts as ended when its COMMIT was answered, not when it was
// sent: a position asked for in between does not cover it.
func TestCommitUnderWayInATransactionOfTheApplications(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, _ := withSession()
	tx := a.begin()
	a.write(a.inside(ctx, tx))
	a.write(a.inside(ctx, tx))
	a.want(a.db.WithContext(ctx), -1, policy.InWrite)
	hold := a.primary.HoldOnly("commit")
	committed := make(chan error, 1)
	go func() { committed <- tx.Commit() }()
	hold.Arrived()
	for range 3 {
		a.want(a.db.WithContext(ctx), -1, policy.InWrite)
	}
	a.primary.Advance(100) // the commit record
	hold.Release()
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	e := a.want(a.db.WithContext(ctx), -1, policy.Behind)
	if e.Want != position(1100) {
		t.Errorf("want: have %s, want a position behind the commit", e.Want)
	}
	a.replicas[0].Set(func(st *fakepg.State) { st.LSN = 1100 })
	ready(t, a.ryw)
	if have, e := a.read(a.db.WithContext(ctx)); have != 0 {
		t.Errorf("have server %d, %s", have, e)
	}
}

func TestRollbackOfATransactionOfTheApplications(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, _ := withSession()
	tx := a.begin()
	a.write(a.inside(ctx, tx))
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	a.want(a.db.WithContext(ctx), 0, policy.CaughtUp)
}

// Nothing can be asked of a transaction whose connection is gone; it has ended.
func TestTransactionOfTheApplicationsWhoseConnectionIsGone(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, _ := withSession()
	tx := a.begin()
	a.write(a.inside(ctx, tx))
	a.primary.Drop()
	if err := tx.Commit(); err == nil || errors.Is(err, sql.ErrTxDone) {
		t.Fatalf("commit: have %v", err)
	}
	// The watcher's connections were dropped, too: it is back after a while.
	for end := time.Now().Add(10 * time.Second); ; {
		have, e := a.read(a.db.WithContext(ctx))
		if have == 0 {
			return
		}
		if e.Reason == policy.InWrite || time.Now().After(end) {
			t.Fatalf("the session stays on the primary: %s", e)
		}
	}
}
