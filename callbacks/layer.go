package callbacks

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/sqlread"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// DefaultCaptureTimeout is how long a write waits for its position.
const DefaultCaptureTimeout = 250 * time.Millisecond

// Config is what a Layer works with. All fields but OnRead and Tell are
// required.
type Config struct {
	Router         *policy.Router
	Classifier     *sqlread.Classifier
	CaptureTimeout time.Duration
	LazyCapture    bool // mark writes instead
	// OnRead is called for reads. Nil: nobody is.
	OnRead *Hook
	// Tell is told of events, as they happen: it must not wait. Nil: nobody is.
	Tell func(Event)
	// Adopt is told of a pool that dbresolver chose and that is not known yet,
	// and of the pool that the same statement would write to. It returns what
	// is known afterwards, or nil for a pool to be left alone.
	Adopt func(pool, source *sql.DB) *policy.Pool
	// Opened reports whether a pool is one of dbresolver's.
	Opened func(pool *sql.DB) bool
}

// Layer is the callbacks of one plugin. Safe for concurrent use.
type Layer struct {
	cfg      Config
	home     *watcher.Group // the cluster of the pool that GORM was opened with
	calls    sync.Pool      // of *call
	cost     cost           // of captures
	prepared sync.Map       // *sql.DB of a replica -> *gorm.PreparedStmtDB
	wrapped  sync.Map       // wrapperKey of a pool that dbresolver chose -> *Pool
	db       atomic.Pointer[gorm.DB]
	resolver atomic.Pointer[policy.Policy]

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	open   sync.WaitGroup // writes whose rows are being read

	count counters
}

// New returns a layer whose own pool leads to the primary of home.
func New(cfg Config, home *watcher.Group) *Layer {
	l := &Layer{cfg: cfg, home: home}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.calls.New = func() any { return &call{layer: l} }
	return l
}

// UseResolver tells the layer which policy the replicas were registered with, so
// that it can ask dbresolver for the prepared statements of any of them.
func (l *Layer) UseResolver(p *policy.Policy) { l.resolver.Store(p) }

const (
	routeName   = "gorm-ryw:route"
	captureName = "gorm-ryw:capture"
	observeName = "gorm-ryw:observe"
	endName     = "gorm-ryw:end"
	resolveName = "gorm:db_resolver"
)

// Register adds the callbacks. It works before and after dbresolver registers
// its own: ours run behind it either way.
func (l *Layer) Register(db *gorm.DB) error {
	l.db.Store(db)
	cb := db.Callback()
	begin := func(first string, p interface{ Get(string) func(*gorm.DB) }) string {
		if p.Get("gorm:begin_transaction") != nil {
			return "gorm:begin_transaction"
		}
		return first
	}
	behind := func(last string, p interface{ Get(string) func(*gorm.DB) }) string {
		if p.Get("gorm:commit_or_rollback_transaction") != nil {
			return "gorm:commit_or_rollback_transaction"
		}
		return last
	}
	c, u, d, q, row, raw := cb.Create(), cb.Update(), cb.Delete(), cb.Query(), cb.Row(), cb.Raw()
	return firstError(
		c.Before(begin("gorm:before_create", c)).After(resolveName).Register(routeName, l.routeWrite),
		c.After(behind("gorm:after_create", c)).Register(captureName, l.capture),
		u.Before(begin("gorm:setup_reflect_value", u)).After(resolveName).Register(routeName, l.routeWrite),
		u.After(behind("gorm:after_update", u)).Register(captureName, l.capture),
		d.Before(begin("gorm:before_delete", d)).After(resolveName).Register(routeName, l.routeWrite),
		d.After(behind("gorm:after_delete", d)).Register(captureName, l.capture),
		raw.Before("gorm:raw").After(resolveName).Register(routeName, l.routeExec),
		raw.After("gorm:raw").Register(captureName, l.capture),
		q.Before("gorm:query").After(resolveName).Register(routeName, l.routeRead),
		q.After("gorm:query").Before("gorm:preload").Register(observeName, l.observe),
		q.After("gorm:after_query").Register(endName, l.end),
		row.Before("gorm:row").After(resolveName).Register(routeName, l.routeRow),
		row.After("gorm:row").Register(observeName, l.observe),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Wrap returns the pool to be used in place of pool, the one GORM was opened
// with, so that transactions begun on it are observed; and the *sql.DB in it.
// The boolean is false for a pool that cannot be wrapped.
func (l *Layer) Wrap(pool gorm.ConnPool) (gorm.ConnPool, *sql.DB, bool) {
	switch p := pool.(type) {
	case *sql.DB:
		known := l.cfg.Router.Pools.Lookup(p)
		if known == nil {
			known = &policy.Pool{Group: l.home}
		}
		return &Pool{DB: p, layer: l, known: known}, p, true
	case *gorm.PreparedStmtDB:
		if inner, db, ok := l.Wrap(p.ConnPool); ok {
			p.ConnPool = inner
			return p, db, true
		}
	}
	return pool, nil, false
}

// unwrap finds the *sql.DB in a pool, and the prepared statements around it.
func unwrap(pool gorm.ConnPool) (*sql.DB, *gorm.PreparedStmtDB) {
	switch p := pool.(type) {
	case *sql.DB:
		return p, nil
	case *Pool:
		return p.DB, nil
	case *call:
		return unwrap(p.base)
	case *gorm.PreparedStmtDB:
		db, _ := unwrap(p.ConnPool)
		return db, p
	}
	return nil, nil
}

// known returns what is known of the pool that a statement was given. A pool
// that is new, as after a late Register, is adopted.
func (l *Layer) known(db *gorm.DB) *policy.Pool {
	pool, _ := unwrap(db.Statement.ConnPool)
	if pool == nil {
		return nil
	}
	if k := l.cfg.Router.Pools.Lookup(pool); k != nil {
		return k
	}
	source := pool
	if toSource := db.Callback().Create().Get(resolveName); toSource != nil {
		probe := throwaway(db)
		toSource(probe)
		source, _ = unwrap(probe.Statement.ConnPool)
	}
	if source == nil {
		return nil
	}
	return l.cfg.Adopt(pool, source)
}

// throwaway returns a copy of db whose statement dbresolver would decide alike,
// and that may be changed.
func throwaway(db *gorm.DB) *gorm.DB {
	stmt := db.Statement
	tx := &gorm.DB{Config: db.Config}
	tx.Statement = &gorm.Statement{
		DB: tx, ConnPool: db.ConnPool, Context: context.Background(),
		Table: stmt.Table, Model: stmt.Model, Schema: stmt.Schema, Clauses: stmt.Clauses,
	}
	tx.Statement.SQL.WriteString(stmt.SQL.String())
	return tx
}
