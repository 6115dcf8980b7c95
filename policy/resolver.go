package policy

import (
	"database/sql"
	"math/rand/v2"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// Policy returns the dbresolver policy of this router. seen is called with each
// slice of alternatives that dbresolver asks about, before the choice.
func (r *Router) Policy(seen func(pools []gorm.ConnPool)) *Policy {
	return &Policy{router: r, seen: seen}
}

// Policy balances over the replicas that are healthy. It promises nothing about
// what they have replayed: dbresolver tells a policy neither the statement nor
// its context. Safe for concurrent use.
type Policy struct {
	router *Router
	seen   func([]gorm.ConnPool)
	force  atomic.Pointer[sql.DB]
}

var _ dbresolver.Policy = (*Policy)(nil)

// Force makes Resolve answer pool while it is among those asked about, until it
// is called with nil.
func (p *Policy) Force(pool *sql.DB) { p.force.Store(pool) }

// Resolve implements dbresolver.Policy.
func (p *Policy) Resolve(pools []gorm.ConnPool) gorm.ConnPool {
	p.seen(pools)
	force := p.force.Load()
	plain := p.router.Settings().Mode == PlainResolver
	healthy := -1
	for n, i := 1, 0; i < len(pools); i++ {
		db, ok := pools[i].(*sql.DB)
		if !ok {
			continue
		}
		if force != nil && db == force {
			return pools[i]
		}
		known := p.router.Pools.Lookup(db)
		if plain || known == nil || known.Replica == nil || !known.Replica.Node.State().Healthy {
			continue
		}
		if rand.IntN(n) == 0 {
			healthy = i
		}
		n++
	}
	if healthy >= 0 {
		return pools[healthy]
	}
	return pools[rand.IntN(len(pools))]
}
