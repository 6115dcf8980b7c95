package callbacks

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"weak"
)

// endings finds the statement that tells when a transaction that is not ours has
// ended. The transaction's own word comes too early: it is done as soon as its
// COMMIT is sent, and a position asked for then may be short of the commit. The
// statements prepared in it are closed when the COMMIT was answered.
//
// A statement refers to its transaction, so it is held weakly; the transaction
// holds it.
type endings struct{ m sync.Map } // weak.Pointer[sql.Tx] -> weak.Pointer[sql.Stmt]

var foreign endings

// of returns what reports whether a transaction has ended. It prepares a
// statement in it, once.
func (e *endings) of(ctx context.Context, tx *sql.Tx) func() bool {
	stmt := e.known(tx)
	if stmt == nil {
		var err error
		if stmt, err = tx.PrepareContext(ctx, "select 1"); err != nil {
			return func() bool { return isDone(tx) }
		}
		key := weak.Make(tx)
		e.m.Store(key, weak.Make(stmt))
		runtime.AddCleanup(tx, func(key weak.Pointer[sql.Tx]) { e.m.Delete(key) }, key)
	}
	return func() bool { return isClosed(stmt) }
}

func (e *endings) known(tx *sql.Tx) *sql.Stmt {
	v, _ := e.m.Load(weak.Make(tx))
	w, ok := v.(weak.Pointer[sql.Stmt])
	if !ok {
		return nil
	}
	return w.Value()
}

// isClosed asks a statement of a transaction to run with a context that has
// ended: it looks whether it is closed before it looks at that, and sends
// nothing either way.
func isClosed(stmt *sql.Stmt) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := stmt.ExecContext(ctx)
	return !errors.Is(err, context.Canceled)
}

// isDone asks a transaction for a statement of no database, which it answers
// without its server: with sql.ErrTxDone once its end has begun, with another
// error before. It is all that can be asked where nothing can be prepared: in a
// transaction that has failed and so will not commit, or while rows are open.
func isDone(tx *sql.Tx) bool {
	ctx := context.Background()
	_, err := tx.StmtContext(ctx, &sql.Stmt{}).ExecContext(ctx)
	return errors.Is(err, sql.ErrTxDone)
}
