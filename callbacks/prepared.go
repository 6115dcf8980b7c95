package callbacks

import (
	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

// poolOf returns a replica's pool in the form the statement wants: with prepared
// statements if its configuration says so. Each server has its own store of
// them: a prepared statement never crosses servers.
func (l *Layer) poolOf(c *call, rep *policy.Replica) gorm.ConnPool {
	if !c.db.PrepareStmt || c.replan {
		return rep.Pool
	}
	if p, ok := l.prepared.Load(rep.Pool); ok {
		return p.(*gorm.PreparedStmtDB)
	}
	p := l.learnPrepared(c, rep)
	if p == nil {
		return rep.Pool
	}
	kept, _ := l.prepared.LoadOrStore(rep.Pool, p)
	return kept.(*gorm.PreparedStmtDB)
}

// learnPrepared finds dbresolver's prepared statements of a replica: dbresolver
// keeps them to itself, but hands them out with the pool it resolves to.
func (l *Layer) learnPrepared(c *call, rep *policy.Replica) *gorm.PreparedStmtDB {
	if db, prepared := unwrap(c.base); db == rep.Pool {
		return preparedOf(prepared, db)
	}
	resolver := l.resolver.Load()
	toReplica := c.db.Callback().Query().Get(resolveName)
	if resolver == nil || toReplica == nil {
		return nil
	}
	probe := throwaway(c.db)
	probe.Statement.Settings.Store(dbresolverRead, struct{}{})
	resolver.Force(rep.Pool)
	toReplica(probe)
	resolver.Force(nil)
	if db, prepared := unwrap(probe.Statement.ConnPool); db == rep.Pool {
		return preparedOf(prepared, db)
	}
	return nil
}

// preparedOf is the prepared statements of a replica on its own pool.
func preparedOf(p *gorm.PreparedStmtDB, pool gorm.ConnPool) *gorm.PreparedStmtDB {
	if p == nil {
		return nil
	}
	return &gorm.PreparedStmtDB{ConnPool: pool, Mux: p.Mux, Stmts: p.Stmts}
}
