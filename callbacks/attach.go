package callbacks

import (
	"database/sql"

	"gorm.io/gorm"
)

const attachedName = "gorm-ryw:attached"

// processor is one of GORM's chains of callbacks.
type processor interface {
	Get(name string) func(*gorm.DB)
}

// Attach stands between dbresolver and the statements, once it has registered its
// callbacks; again does nothing. A plain Replace would be ignored, as dbresolver's
// callback is registered with Before("*").
func (l *Layer) Attach(db *gorm.DB) error {
	cb := db.Callback()
	c, u, d, q, row, raw := cb.Create(), cb.Update(), cb.Delete(), cb.Query(), cb.Row(), cb.Raw()
	if q.Get(resolveName) == nil || q.Get(attachedName) != nil {
		return nil
	}
	return firstError(
		c.Before("*").Replace(resolveName, l.resolveUnlessForeign(c)),
		u.Before("*").Replace(resolveName, l.resolveUnlessForeign(u)),
		d.Before("*").Replace(resolveName, l.resolveUnlessForeign(d)),
		row.Before("*").Replace(resolveName, l.resolveUnlessForeign(row)),
		raw.Before("*").Replace(resolveName, l.resolveUnlessForeign(raw)),
		q.Before("*").Replace(resolveName, l.resolveAndWrap(q)),
		q.Register(attachedName, func(*gorm.DB) {}),
	)
}

// resolveUnlessForeign has dbresolver choose a pool, but not in place of the one
// connection of (*gorm.DB).Connection or of a pool that is nobody's.
func (l *Layer) resolveUnlessForeign(p processor) func(*gorm.DB) {
	original := p.Get(resolveName)
	return func(db *gorm.DB) {
		if !l.isForeign(db.Statement.ConnPool) {
			original(db)
		}
	}
}

// resolveAndWrap is resolveUnlessForeign for the processor whose callback
// Clauses(dbresolver.Read, Write, Use) call at once: what is begun on the pool
// that they choose is observed.
func (l *Layer) resolveAndWrap(p processor) func(*gorm.DB) {
	resolve := l.resolveUnlessForeign(p)
	return func(db *gorm.DB) {
		resolve(db)
		if chosenByClause(db.Statement) {
			l.wrapChosen(db)
		}
	}
}

func (l *Layer) isForeign(pool gorm.ConnPool) bool {
	switch p := pool.(type) {
	case *Pool, *call:
		return false
	case *sql.DB:
		return l.cfg.Router.Pools.Lookup(p) == nil && !l.cfg.Opened(p)
	case *gorm.PreparedStmtDB:
		return l.isForeign(p.ConnPool)
	}
	return !inTransaction(pool)
}

// The settings that Clauses(dbresolver.Read) and Write leave on a statement, and
// the clause that Use does.
var (
	dbresolverRead  any = "gorm:db_resolver:read" // as keys of a sync.Map, made once
	dbresolverWrite any = "gorm:db_resolver:write"
)

const dbresolverUse = "gorm:db_resolver:using"

func has(stmt *gorm.Statement, setting any) bool {
	_, ok := stmt.Settings.Load(setting)
	return ok
}

func chosenByClause(stmt *gorm.Statement) bool {
	_, use := stmt.Clauses[dbresolverUse]
	return use || has(stmt, dbresolverRead) || has(stmt, dbresolverWrite)
}

// wrapChosen puts the transaction-observing pool in place of the one that was
// chosen.
func (l *Layer) wrapChosen(db *gorm.DB) {
	stmt := db.Statement
	pool, prepared := unwrap(stmt.ConnPool)
	if pool == nil {
		return
	}
	w := l.wrapperOf(db, pool)
	switch {
	case w == nil:
	case prepared == nil:
		stmt.ConnPool = w
	default:
		stmt.ConnPool = &gorm.PreparedStmtDB{ConnPool: w, Mux: prepared.Mux, Stmts: prepared.Stmts}
	}
}

type wrapperKey struct {
	pool  *sql.DB
	reads bool
}

func (l *Layer) wrapperOf(db *gorm.DB, pool *sql.DB) *Pool {
	key := wrapperKey{pool, has(db.Statement, dbresolverRead)}
	if w, ok := l.wrapped.Load(key); ok {
		return w.(*Pool)
	}
	known := l.known(db)
	if known == nil {
		return nil
	}
	w, _ := l.wrapped.LoadOrStore(key, &Pool{DB: pool, layer: l, known: known, reads: key.reads})
	return w.(*Pool)
}
