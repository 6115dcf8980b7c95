package callbacks

import (
	"context"
	"database/sql"
	"runtime"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// readsOnly reports whether a transaction may run on a replica at all. There is no
// SERIALIZABLE on a standby (PostgreSQL manual, 27.4.1). Statements prepared by GORM
// are kept for the pool that the transaction was begun on and cannot cross servers,
// so that with PrepareStmt the primary it is.
func (p *Pool) readsOnly(opts *sql.TxOptions) bool {
	if opts != nil && opts.Isolation > sql.LevelSnapshot {
		return false
	}
	return (isReadOnly(opts) || p.reads) && !begunPrepared()
}

// begunPrepared reports whether a pool of prepared statements begins the
// transaction: GORM tells in no other way.
func begunPrepared() bool {
	const toCaller = 4 // Callers, this, readsOnly, BeginTx
	var pc [1]uintptr
	runtime.Callers(toCaller, pc[:])
	f, _ := runtime.CallersFrames(pc[:]).Next()
	return f.Function == "gorm.io/gorm.(*PreparedStmtDB).BeginTx"
}

// beginRead begins a read-only transaction on a replica that qualifies, before the
// transaction has its snapshot, or on the primary if none does.
func (p *Pool) beginRead(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	var q policy.Request
	var obs observers
	_, parent := p.layer.precedence(ctx, beginHint(ctx), p.reads, &q, &obs)
	if q.Level == policy.Strong || parent.inWrite() {
		return p.beginOnPrimary(ctx, opts, nil)
	}
	q.Set = p.readSet()
	var tx *sql.Tx
	d, err := p.layer.onReplica(ctx, &q, func(pool *sql.DB) (err error) {
		tx, err = pool.BeginTx(ctx, opts)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case tx == nil:
		return p.beginOnPrimary(ctx, opts, q.Hand())
	}
	return p.layer.pinned(ctx, tx, d), nil
}

// onReplica has something begun on a replica that qualifies for q, of two at most if
// they fail. Without an error and without a replica, the primary has to do.
func (l *Layer) onReplica(ctx context.Context, q *policy.Request, begin func(*sql.DB) error) (policy.Decision, error) {
	q.NoChecks = true
	r := l.cfg.Router
	d := r.Decide(ctx, q)
	retries, tried := 0, (*policy.Replica)(nil)
	for fell := false; d.Replica != nil; {
		err := begin(d.Replica.Pool)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !worthRetrying(err) {
			return d, err
		}
		retries, tried = retries+1, d.Replica
		judged := d.Judged
		if q.Exclude != nil { // the second one, or even a third
			q.NoReplica, fell = fell, true
			d = r.FallBack(ctx, q, policy.ReplicaFailed)
			d.Judged = judged
		} else {
			q.Exclude = d.Replica
			d = r.Decide(ctx, q)
		}
	}
	d.Retries, d.Tried = retries, tried
	l.final(l.groupOf(q), &d)
	return d, d.Err
}

func (l *Layer) groupOf(q *policy.Request) *watcher.Group {
	if q.Set == nil {
		return l.home
	}
	return q.Set.Group
}

// pinned is a transaction that stays on the replica that was chosen.
func (l *Layer) pinned(ctx context.Context, tx *sql.Tx, d policy.Decision) *Tx {
	t := &Tx{Tx: tx, layer: l, group: d.Replica.Node.Group(), decision: d, readOnly: true}
	d.Replica.Begin()
	t.begin(ctx)
	return t
}

// unprepared takes a transaction on a replica out of a session's prepared
// statements, which are the primary's.
func unprepared(stmt *gorm.Statement) {
	if _, prepared := stmt.ConnPool.(*gorm.PreparedStmtTX); !prepared {
		return
	}
	if t := transactionOf(stmt.ConnPool); t != nil && t.decision.Replica != nil {
		stmt.ConnPool = t
	}
}

// beginHint is the hint of Clauses(…).Begin(), which alone of a query's hints
// reaches a transaction, or else the context's.
func beginHint(ctx context.Context) *policy.Hint {
	v := ctxval.From(ctx)
	if v == nil {
		return nil
	}
	if h, ok := v.Begin.(*policy.Hint); ok {
		return h
	}
	return nil
}

// readSet returns the replicas that dbresolver would read from, without a table
// being named.
func (p *Pool) readSet() *policy.Set {
	if p.known.Set != nil {
		return p.known.Set
	}
	probe := p.layer.resolve(dbresolverRead, p.layer.toReplica())
	if probe == nil {
		return nil
	}
	if k := p.layer.known(probe); k != nil && k.Group == p.known.Group {
		return k.Set
	}
	return nil
}

// source returns the pool of the primary that a replica follows.
func (p *Pool) source() (*Pool, error) {
	for db, k := range p.layer.cfg.Router.Pools.All() {
		if k.Replica == nil && k.Group == p.known.Group {
			return &Pool{DB: db, layer: p.layer, known: k}, nil
		}
	}
	return nil, gorm.ErrInvalidDB
}

func (l *Layer) toReplica() func(*gorm.DB) {
	db := l.db.Load()
	if db == nil {
		return nil
	}
	return db.Callback().Query().Get(resolveName)
}

// resolve has dbresolver choose a pool for a statement about nothing.
func (l *Layer) resolve(setting any, choose func(*gorm.DB)) *gorm.DB {
	if choose == nil {
		return nil
	}
	db := l.db.Load().Session(&gorm.Session{NewDB: true, Initialized: true})
	probe := throwaway(db)
	probe.Statement.Settings.Store(setting, struct{}{})
	choose(probe)
	return probe
}

// DecisionOf returns why a transaction is on the replica that it was begun on;
// false for any other pool.
func DecisionOf(pool gorm.ConnPool) (policy.Decision, bool) {
	t := transactionOf(pool)
	if t == nil || t.decision.Replica == nil {
		return policy.Decision{}, false
	}
	return t.decision, true
}

// SQLTx returns the *sql.Tx behind a transaction's handle. What is done with it is
// taken for a write.
func SQLTx(pool gorm.ConnPool) (*sql.Tx, bool) {
	if t := transactionOf(pool); t != nil {
		t.sent(context.Background(), "")
		return t.Tx, true
	}
	tx := rawTx(pool)
	return tx, tx != nil
}
