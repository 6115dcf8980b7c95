package callbacks

import (
	"context"
	"database/sql"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// Pool is a primary's pool on which transactions are observed. It stands in the
// place of the *sql.DB, which it leaves usable for everything else.
type Pool struct {
	*sql.DB
	layer   *Layer
	group   *watcher.Group
	reports bool // its driver reports the commits
}

var (
	_ gorm.ConnPoolBeginner = (*Pool)(nil)
	_ gorm.GetDBConnector   = (*Pool)(nil)
)

// GetDBConn implements gorm.GetDBConnector.
func (p *Pool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// BeginTx implements gorm.ConnPoolBeginner. A transaction that GORM begins for
// one statement stays the plain *sql.Tx that hooks may look for; its commit is
// observed by the statement's callbacks.
func (p *Pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	if rec := RecordOf(ctx); rec != nil && rec.implicit {
		rec.implicit = false
		return p.DB.BeginTx(ctx, opts)
	}
	if p.reports {
		return p.beginReported(ctx, opts)
	}
	sqlTx, err := p.DB.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	t := &Tx{Tx: sqlTx, layer: p.layer, group: p.group, readOnly: opts != nil && opts.ReadOnly}
	t.begin(ctx)
	return t, nil
}

// Tx is a transaction begun by the application. Its Commit captures the position
// for every session whose statements ran in it. Safe for concurrent use as far
// as *sql.Tx is.
type Tx struct {
	*sql.Tx
	layer    *Layer
	group    *watcher.Group
	readOnly bool
	own      session.Session
	unwatch  func() bool // stops watching the context

	mu        sync.Mutex // protects what follows
	wrote     bool
	ended     bool
	observers observers
	writing   []*session.Session // told of BeginWrite
}

var _ gorm.Tx = (*Tx)(nil)

// transactionOf returns the application's transaction behind a pool, or nil.
func transactionOf(pool gorm.ConnPool) *Tx {
	switch t := pool.(type) {
	case *Tx:
		return t
	case *gorm.PreparedStmtTX:
		tx, _ := t.Tx.(*Tx)
		return tx
	}
	return nil
}

// begin makes the sessions of the beginning context observers. A read-write
// transaction keeps their other reads on the primary until it ends, by itself
// if the context does.
func (t *Tx) begin(ctx context.Context) {
	ses, _, _, _ := valuesOf(ctx)
	t.observers = observersOf(ctx, nil)
	t.observers.add(&t.own)
	if ses != nil && !t.readOnly {
		ses.BeginWrite()
		t.writing = append(t.writing, ses)
	}
	t.unwatch = context.AfterFunc(ctx, t.abandoned)
}

// join adds the observers of a statement that ran in the transaction.
func (t *Tx) join(obs *observers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observers.join(obs)
}

// joinContext adds the sessions of a statement's context.
func (t *Tx) joinContext(ctx context.Context) {
	ses, _, sink, _ := valuesOf(ctx)
	if ses == nil && sink == nil {
		return
	}
	var obs observers
	obs.add(ses)
	obs.add(sink)
	t.join(&obs)
}

// sent notes a statement: one that is not provably a pure read is a write.
func (t *Tx) sent(ctx context.Context, query string) {
	t.joinContext(ctx)
	if t.readOnly || t.layer.cfg.Classifier.Statement(query).Pure {
		return
	}
	t.mu.Lock()
	t.wrote = true
	t.mu.Unlock()
}

// ExecContext implements gorm.ConnPool.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	t.sent(ctx, query)
	return t.Tx.ExecContext(ctx, query, args...)
}

// QueryContext implements gorm.ConnPool.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	t.sent(ctx, query)
	return t.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext implements gorm.ConnPool.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	t.sent(ctx, query)
	return t.Tx.QueryRowContext(ctx, query, args...)
}

// PrepareContext implements gorm.ConnPool.
func (t *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	t.sent(ctx, query)
	return t.Tx.PrepareContext(ctx, query)
}

// StmtContext implements gorm.Tx. The statement's text is not known here, so it
// counts as a write.
func (t *Tx) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	t.sent(ctx, "")
	return t.Tx.StmtContext(ctx, stmt)
}

// Commit commits and, if anything was written, captures the position before it
// returns. The error is the commit's own.
func (t *Tx) Commit() error {
	err := t.Tx.Commit()
	wrote, obs := t.end()
	switch {
	case obs == nil:
	case err != nil && wrote:
		t.layer.failed(t.group, err, obs)
	case wrote:
		t.layer.wrote(t.group, obs)
	default:
		t.layer.sawPrimary(t.group, obs, &t.own)
	}
	t.release()
	return err
}

// Rollback rolls back. What was read in the transaction has been read.
func (t *Tx) Rollback() error {
	err := t.Tx.Rollback()
	if _, obs := t.end(); obs != nil {
		t.sawPrimary(obs)
	}
	t.release()
	return err
}

// abandoned is called when the context ends before the transaction did. Then
// database/sql rolls it back by itself, unless a Commit is under way, which has
// the sessions told once more.
func (t *Tx) abandoned() {
	t.mu.Lock()
	obs := t.observers
	t.mu.Unlock()
	t.sawPrimary(&obs)
	t.releaseSessions()
}

func (t *Tx) sawPrimary(obs *observers) {
	key := t.group.Key()
	obs.each(func(s *session.Session) { s.MarkSawPrimary(key) })
}

// end marks the transaction as ended and returns who is to be told; nil if it had
// ended before, as for a Rollback behind a Commit.
func (t *Tx) end() (wrote bool, obs *observers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return t.wrote, nil
	}
	t.ended = true
	all := t.observers
	return t.wrote, &all
}

// release ends what begin began. Idempotent.
func (t *Tx) release() {
	t.unwatch()
	t.releaseSessions()
}

// releaseSessions lets the sessions' other reads leave the primary again.
func (t *Tx) releaseSessions() {
	t.mu.Lock()
	writing := t.writing
	t.writing = nil
	t.mu.Unlock()
	for _, s := range writing {
		s.EndWrite()
	}
}

// token is a mark while the transaction is open: right for whoever can learn of
// it only after the commit.
func (t *Tx) token() token.Token {
	t.mu.Lock()
	open := !t.ended
	t.mu.Unlock()
	tok := t.own.Token()
	if open {
		return tok.With(token.Entry{Key: t.group.Key(), Wrote: true})
	}
	return tok
}
