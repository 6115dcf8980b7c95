package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// cacheEvery is how often the cached control asks its one replica.
const cacheEvery = 100 * time.Millisecond

// control is the same application without the library: over dbresolver alone, or
// with what is often built by hand instead: the position of the last write, and
// the cached position of one replica that decides whether "the replicas" have it.
//
// For its sake every possible excuse is granted: its writes have positions, and
// every read counts as one that reported losses.
type control struct {
	db   *gorm.DB
	pool *sql.DB
	// cached is nil for dbresolver alone.
	cached *cache
}

func openControl(o *Orders) (app, error) {
	db, pool, err := openGORM(o)
	if err != nil {
		return nil, err
	}
	c := &control{db: db, pool: pool}
	if err := db.Use(dbresolver.Register(dbresolver.Config{Replicas: dialectors(o)})); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := sizePools(db, o.Connections); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if o.Mode == modeCached {
		// The last server is a standby in the beginning, as the first is not.
		if c.cached, err = newCache(o.Replicas[len(o.Replicas)-1]); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *control) close() error {
	errs := []error{c.pool.Close()}
	if c.cached != nil {
		errs = append(errs, c.cached.close())
	}
	if dr, ok := c.db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver); ok {
		errs = append(errs, dr.Call(func(pool gorm.ConnPool) error {
			if p, ok := pool.(*sql.DB); ok {
				return p.Close()
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

func (c *control) write(ctx context.Context, b *bearer, key, version int64, way int) (written, error) {
	db := c.db.WithContext(ctx)
	if err := put(db, key, version, way); err != nil {
		return written{}, err
	}
	var p struct {
		LSN      int64
		Timeline string
	}
	err := db.Clauses(dbresolver.Write).Raw(`select pg_current_wal_insert_lsn() - '0/0' as lsn,
		substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as timeline`).Scan(&p).Error
	if err != nil {
		return written{}, nil // the write itself was acknowledged
	}
	b.text = later(b.text, strconv.FormatInt(p.LSN, 10))
	timeline, _ := strconv.ParseUint(p.Timeline, 16, 32) // zero is "not recorded"
	return written{lsn: uint64(p.LSN), timeline: uint32(timeline)}, nil
}

func (c *control) read(ctx context.Context, b *bearer, r read) (found, error) {
	db := c.db.WithContext(ctx)
	if r.strong || c.cached != nil && !r.stale && !c.cached.has(b.text) {
		db = db.Clauses(dbresolver.Write)
	}
	f, _, err := query(db, r)
	f.lost = true
	return f, err
}

func (c *control) observe(b *bearer, text string) error {
	b.text = later(b.text, text)
	return nil
}

// later returns the larger of two positions; empty is none.
func later(a, b string) string {
	if position(a) > position(b) {
		return a
	}
	return b
}

func position(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // empty is zero
	return n
}

// cache asks one replica for its position now and then.
type cache struct {
	pool *sql.DB
	at   atomic.Int64
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newCache(dsn string) (*cache, error) {
	pool, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &cache{pool: pool, stop: stop}
	c.wg.Go(func() { c.poll(ctx) })
	return c, nil
}

func (c *cache) poll(ctx context.Context) {
	tick := time.NewTicker(cacheEvery)
	defer tick.Stop()
	for {
		c.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask keeps the last position when the replica does not answer.
func (c *cache) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var at sql.NullInt64
	if c.pool.QueryRowContext(ctx, "select pg_last_wal_replay_lsn() - '0/0'").Scan(&at) == nil && at.Valid {
		c.at.Store(at.Int64)
	}
}

func (c *cache) has(text string) bool { return c.at.Load() >= position(text) }

func (c *cache) close() error {
	c.stop()
	c.wg.Wait()
	return c.pool.Close()
}
