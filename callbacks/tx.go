package callbacks

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// Pool is a pool on which transactions are observed: a primary's, or a replica's
// that Clauses(dbresolver.Read) chose. It stands in the place of the *sql.DB, which
// it leaves usable for everything else.
type Pool struct {
	*sql.DB
	layer *Layer
	known *policy.Pool
	reads bool // Clauses(dbresolver.Read) chose it
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
	switch readsOnly := p.readsOnly(opts); {
	case p.layer.plain() && p.known.Replica != nil:
		return p.beginPlain(ctx, opts)
	case readsOnly && !p.layer.plain():
		return p.beginRead(ctx, opts)
	}
	return p.beginOnPrimary(ctx, opts, nil)
}

// beginOnPrimary begins a transaction on the primary. One that fell back to it ends
// that with its own end.
func (p *Pool) beginOnPrimary(ctx context.Context, opts *sql.TxOptions, fell func()) (_ gorm.ConnPool, err error) {
	defer func() {
		if err != nil && fell != nil {
			fell()
		}
	}()
	obs := observersOf(ctx, beginHint(ctx))
	if _, err := p.layer.guard(ctx, p.known.Group, &obs); err != nil {
		return nil, err
	}
	if p.known.Replica != nil {
		source, err := p.source()
		if err != nil {
			return nil, err
		}
		return source.beginOnPrimary(ctx, opts, fell)
	}
	if p.known.Reports {
		return p.beginReported(ctx, opts, fell)
	}
	sqlTx, err := p.DB.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	t := &Tx{Tx: sqlTx, layer: p.layer, group: p.known.Group, readOnly: isReadOnly(opts), fell: fell}
	t.begin(ctx)
	return t, nil
}

// PrepareContext implements gorm.ConnPool.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	stmt, err := p.DB.PrepareContext(ctx, query)
	texts.add(stmt, query)
	return stmt, err
}

func isReadOnly(opts *sql.TxOptions) bool { return opts != nil && opts.ReadOnly }

// Tx is a transaction begun by the application. Its Commit captures the position
// for every session whose statements ran in it. Safe for concurrent use as far
// as *sql.Tx is.
type Tx struct {
	*sql.Tx
	layer    *Layer
	group    *watcher.Group
	decision policy.Decision // on a replica, why it is there
	readOnly bool
	fell     func() // ends a read that fell back to the primary; nil if it did not
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

// begin makes the sessions of the beginning context observers. A transaction on
// the primary keeps their other reads there until it ends, by itself if the context
// does.
func (t *Tx) begin(ctx context.Context) {
	obs := observersOf(ctx, beginHint(ctx))
	t.join(&obs)
	t.mu.Lock()
	t.observers.add(&t.own)
	t.mu.Unlock()
	t.unwatch = context.AfterFunc(ctx, t.abandoned)
}

// join adds the observers of a statement that ran in the transaction.
func (t *Tx) join(obs *observers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	obs.each(func(s *session.Session) {
		t.observers.add(s)
		if t.ended || t.decision.Replica != nil || s == &t.own || slices.Contains(t.writing, s) {
			return
		}
		s.BeginWrite()
		t.writing = append(t.writing, s)
	})
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
	if isSilent(ctx) {
		return
	}
	t.joinContext(ctx)
	if t.readOnly || t.layer.writesNothing(query) {
		return
	}
	t.mu.Lock()
	t.wrote = true
	t.mu.Unlock()
}

// ExecContext implements gorm.ConnPool.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	t.sent(ctx, query)
	defer t.answered()
	return t.Tx.ExecContext(ctx, query, args...)
}

// QueryContext implements gorm.ConnPool.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	t.sent(ctx, query)
	defer t.answered()
	return t.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext implements gorm.ConnPool.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	t.sent(ctx, query)
	defer t.answered()
	return t.Tx.QueryRowContext(ctx, query, args...)
}

// PrepareContext implements gorm.ConnPool.
func (t *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	t.sent(ctx, query)
	stmt, err := t.Tx.PrepareContext(ctx, query)
	texts.add(stmt, query)
	return stmt, err
}

// StmtContext implements gorm.Tx. A statement that was not prepared by way of the
// plugin counts as a write: its text is not known.
func (t *Tx) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	t.sent(ctx, texts.of(stmt))
	return t.Tx.StmtContext(ctx, stmt)
}

// Commit commits and, if anything was written, captures the position before it
// returns. The error is the commit's own.
func (t *Tx) Commit() error {
	err := t.Tx.Commit()
	wrote, obs := t.end()
	switch {
	case obs == nil:
	case t.decision.Replica != nil:
		t.saw(obs)
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
		t.saw(obs)
	}
	t.release()
	return err
}

// abandoned is called when the context ends before the transaction did. Then
// database/sql rolls it back by itself, unless a Commit is under way, which has
// the sessions told once more.
func (t *Tx) abandoned() {
	if t.decision.Replica != nil {
		if _, obs := t.end(); obs != nil {
			t.saw(obs)
		}
		return
	}
	t.mu.Lock()
	obs := t.observers
	t.mu.Unlock()
	t.saw(&obs)
	t.releaseSessions()
}

// saw has the sessions learn that they have read.
func (t *Tx) saw(obs *observers) {
	if !t.layer.keepsFloors() {
		return
	}
	key := t.group.Key()
	if t.decision.Replica != nil {
		at := mono.Now()
		obs.each(func(s *session.Session) { s.ReadNode(key, t.decision.Incarnation, at) })
		return
	}
	t.layer.markSeen(key, obs)
}

// answered tells the sessions of a read on a replica: their reads outside of the
// transaction may not go back behind it, though it is still open.
func (t *Tx) answered() {
	if t.decision.Replica == nil {
		return
	}
	t.mu.Lock()
	obs := t.observers
	t.mu.Unlock()
	t.saw(&obs)
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
	if rep := t.decision.Replica; rep != nil {
		rep.End()
	}
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
	if t.fell != nil {
		t.fell()
	}
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
	if open && t.decision.Replica == nil {
		return tok.With(token.Entry{Key: t.group.Key(), Wrote: true, Minted: time.Now()})
	}
	return tok
}
