package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// source is where a node's own connections come from.
type source struct {
	name string
	dial watcher.Dial
	pg   *pgdial.Source
	node atomic.Pointer[watcher.Node] // told its name once that is known
}

// named has the node renamed when a pool's first connection tells its address.
func (s *source) named(n *watcher.Node) { s.node.Store(n) }

// driverOf returns the connector of rywpgx that a pool was opened with, or nil.
func driverOf(pool *sql.DB) *rywpgx.Connector {
	c, _ := rywpgx.Of(pool)
	return c
}

// bind has a connector ask and tell hooks. It reports whether it does: a pool that
// another plugin was installed on already cannot be had.
func (p *Plugin) bind(c *rywpgx.Connector, hooks rywpgx.Hooks) bool {
	if c == nil {
		return false
	}
	if err := c.Bind(hooks, p.cfg.CaptureTimeout); err != nil {
		p.cfg.Logger.Warn("gorm-ryw: pool is not followed at its driver", "pool", c.Name(), "error", err)
		return false
	}
	p.bound = append(p.bound, func() { c.Unbind(hooks) })
	return true
}

// sourceOf returns how to connect to what a dialector or, failing that, a pool
// connects to. It does not connect.
func sourceOf(d gorm.Dialector, pool *sql.DB) (*source, error) {
	if pool != nil {
		if c := driverOf(pool); c != nil {
			return &source{name: c.Name(), dial: c.Dial}, nil
		}
	}
	if pd, ok := d.(*postgres.Dialector); ok {
		pg, err := pgdial.FromConfig(pd.Config)
		if err == nil {
			return &source{name: pg.Name(), dial: pg.Dial, pg: pg}, nil
		}
		if !errors.Is(err, pgdial.ErrNoDSN) || pool == nil {
			return nil, err
		}
	}
	if pool == nil {
		return nil, fmt.Errorf("dialector is %T: want one of gorm.io/driver/postgres with a DSN", d)
	}
	return fromPool("pool", pool), nil
}

// fromPool connects to wherever the pool's connections were opened to. The
// address becomes known with the first one.
func fromPool(name string, pool *sql.DB) *source {
	s := &source{name: name}
	var mu sync.Mutex
	var pg *pgdial.Source
	s.dial = func(ctx context.Context) (*pgx.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if pg == nil {
			found, err := pgdial.FromPool(ctx, pool)
			if err != nil {
				return nil, err
			}
			pg = found
			if n := s.node.Load(); n != nil {
				n.Rename(pg.Name())
			}
		}
		conn, err := pg.Dial(ctx)
		if err != nil {
			pg = nil // credentials may have changed: ask the pool again
		}
		return conn, err
	}
	return s
}

// openReplicas opens Config.Replicas and registers them with dbresolver. No
// connection is made: a replica that is down is found so by its watcher.
func (p *Plugin) openReplicas(db *gorm.DB) error {
	if len(p.cfg.Replicas) == 0 {
		return nil
	}
	if _, ok := db.Plugins[(&dbresolver.DBResolver{}).Name()]; ok {
		return invalid("Replicas: dbresolver is registered already; give it the replicas, with Policy: ryw.Policy(), and leave Config.Replicas empty")
	}
	var replicas []*policy.Replica
	var dialectors []gorm.Dialector
	for i, d := range p.cfg.Replicas {
		r, err := p.openReplica(d)
		if err != nil {
			return fmt.Errorf("%w: Replicas[%d]: %w", ErrConfig, i, err)
		}
		p.opened = append(p.opened, r.Pool)
		replicas = append(replicas, r)
		dialectors = append(dialectors, opened{d, r.Pool})
	}
	p.router.Pools.AddSet(p.home, replicas)
	return db.Use(dbresolver.Register(dbresolver.Config{Replicas: dialectors, Policy: p.policy}))
}

func (p *Plugin) openReplica(d gorm.Dialector) (*policy.Replica, error) {
	if rd, ok := d.(*rywpgx.Dialector); ok {
		c, err := rd.Connector()
		if err != nil {
			return nil, err
		}
		node := p.home.Add(c.Name(), c.Dial, "")
		checks := p.bind(c, p.layer.ReplicaHooks(node))
		return &policy.Replica{Node: node, Pool: sql.OpenDB(c), Checks: checks}, nil
	}
	src, err := sourceOf(d, nil)
	if err != nil {
		return nil, err
	}
	node := p.home.Add(src.name, src.dial, "")
	hooks := p.layer.ReplicaHooks(node)
	admit := func(ctx context.Context, conn *pgx.Conn) error {
		_, err := hooks.Admit(ctx, conn)
		return err
	}
	return &policy.Replica{Node: node, Pool: src.pg.OpenDB(admit, hooks.Admitted)}, nil
}

// opened is a dialector whose pool is open already.
type opened struct {
	gorm.Dialector
	pool *sql.DB
}

// Apply keeps GORM from connecting: dbresolver would fail if a replica is down.
func (o opened) Apply(c *gorm.Config) error {
	c.DisableAutomaticPing = true
	return nil
}

// Initialize gives the handle that dbresolver makes its pool.
func (o opened) Initialize(db *gorm.DB) error {
	db.ConnPool = o.pool
	return nil
}
