package rywplugin

import (
	"database/sql"
	"fmt"
	"slices"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

const notOurPool = "its pool was not opened by this plugin (Config.TrustPools accepts it)"

// seePools is told by dbresolver, through the policy, which pools are
// alternatives to each other.
func (p *Plugin) seePools(pools []gorm.ConnPool) {
	first, ok := pools[0].(*sql.DB)
	if !ok {
		return
	}
	if k := p.router.Pools.Lookup(first); k != nil && (k.Set == nil || len(k.Set.Replicas) == len(pools)) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	same := func(have []gorm.ConnPool) bool { return &have[0] == &pools[0] }
	if !slices.ContainsFunc(p.seen, same) {
		p.seen = append(p.seen, pools)
	}
}

// adopt takes up a pool that dbresolver opened: a source, or a replica and with
// it the alternatives that were seen. A pool that is not dbresolver's is left
// alone: what it leads to, nobody has said.
func (p *Plugin) adopt(pool, source *sql.DB) *policy.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.router.Pools.Lookup(pool); k != nil || p.closed {
		return k
	}
	if !p.isResolvers(pool) {
		return nil
	}
	primary := p.router.Pools.Lookup(source)
	if primary == nil {
		p.adoptSource(source)
		primary = p.router.Pools.Lookup(source)
	}
	if pool == source || primary.Replica != nil {
		return primary
	}
	p.adoptReplicas(primary.Group, p.alternatives(pool))
	return p.router.Pools.Lookup(pool)
}

func (p *Plugin) openedByResolver(pool *sql.DB) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isResolvers(pool)
}

// foreignAtMost bounds how many pools of others are remembered as such.
const foreignAtMost = 64

// isResolvers reports whether dbresolver has opened a pool.
func (p *Plugin) isResolvers(pool *sql.DB) bool {
	if _, foreign := p.foreign[pool]; foreign || p.db == nil {
		return false
	}
	found := false
	if dr, ok := p.db.Plugins[(&dbresolver.DBResolver{}).Name()].(*dbresolver.DBResolver); ok {
		_ = dr.Call(func(cp gorm.ConnPool) error { // which returns no error but ours
			db, _ := cp.(*sql.DB)
			found = found || db == pool
			return nil
		})
	}
	if !found {
		if len(p.foreign) == foreignAtMost {
			clear(p.foreign)
		}
		p.foreign[pool] = struct{}{}
	}
	return found
}

func (p *Plugin) adoptSource(pool *sql.DB) {
	src := adopted(fmt.Sprintf("source %d", len(p.groups)), pool)
	g := watcher.NewGroup(p.watching(), src.name, src.dial)
	src.named(g.Primary)
	p.groups = append(p.groups, g)
	p.router.Pools.AddPrimary(pool, g, p.bind(driverOf(pool), p.layer.PrimaryHooks(g)))
}

// alternatives returns the set that pool was seen in, or pool alone.
func (p *Plugin) alternatives(pool *sql.DB) []*sql.DB {
	for _, pools := range p.seen {
		var set []*sql.DB
		for _, cp := range pools {
			if db, ok := cp.(*sql.DB); ok {
				set = append(set, db)
			}
		}
		if slices.Contains(set, pool) {
			return set
		}
	}
	return []*sql.DB{pool}
}

func (p *Plugin) adoptReplicas(g *watcher.Group, pools []*sql.DB) {
	foreign := 0
	var replicas []*policy.Replica
	for _, pool := range pools {
		if k := p.router.Pools.Lookup(pool); k != nil && k.Replica != nil {
			replicas = append(replicas, k.Replica)
			continue
		}
		src := adopted(fmt.Sprintf("replica %d", len(g.Replicas())), pool)
		node := g.Add(src.name, src.dial, notOurPool)
		src.named(node)
		bound := p.bind(driverOf(pool), p.layer.ReplicaHooks(node))
		if bound || p.cfg.TrustPools {
			node.Trust()
		} else {
			foreign++
		}
		replicas = append(replicas, &policy.Replica{Node: node, Pool: pool, Checks: bound})
	}
	p.router.Pools.AddSet(g, replicas)
	if foreign > 0 {
		p.cfg.Logger.Warn("gorm-ryw: replicas serve no token reads", "reason", notOurPool, "pools", foreign)
	}
}

// adopted returns how to connect to what a pool connects to.
func adopted(name string, pool *sql.DB) *source {
	if c := driverOf(pool); c != nil {
		return &source{name: c.Name(), dial: c.Dial}
	}
	return fromPool(name, pool)
}
