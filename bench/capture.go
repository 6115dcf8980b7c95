package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"gorm.io/gorm"
)

// capturing counts the position queries that concurrent commits share. Each
// writer commits one row after another, in GORM's own transaction; clients and
// capture have the network's delay.
//
// The queries are counted by the library and, independently of it, in what passes
// on the wire.
func capturing(ctx context.Context, e *env, r *report) error {
	c, err := e.capture(ctx, captureLoad{writers: 32, each: 150, delay: 500 * time.Microsecond})
	if err != nil {
		return err
	}
	r.figure("capture.commits_at_32_writers", float64(c.commits), "commits")
	r.figure("capture.commits_per_second_at_32_writers", float64(c.commits)/c.took.Seconds(), "1/s")
	r.figure("capture.queries_per_commit_at_32_writers", c.perCommit(), "queries")
	r.figure("capture.queries_per_commit_at_32_writers.on_wire", float64(c.onWire)/float64(c.commits), "queries")
	c, err = e.capture(ctx, captureLoad{writers: 64, each: 100, delay: 500 * time.Microsecond})
	if err != nil {
		return err
	}
	r.figure("capture.queries_per_commit_at_64_writers", c.perCommit(), "queries")
	return nil
}

type captureLoad struct {
	writers, each int // commits of each writer
	delay         time.Duration
}

type captured struct {
	commits int64
	queries int64 // as the library counts them
	onWire  int64
	took    time.Duration
}

func (c captured) perCommit() float64 { return float64(c.queries) / float64(c.commits) }

func (e *env) capture(ctx context.Context, load captureLoad) (c captured, err error) {
	t, err := newTap(e.cluster.Primary(), load.delay)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	at := e.addresses()
	at.primary = t.dsn
	// A capture that is given up would be a commit without a query.
	a, err := openPlugin(ctx, at, gorm.Config{}, rywplugin.Config{ProbeTimeout: patience, CaptureTimeout: patience})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	pool, err := a.DB.DB()
	if err != nil {
		return c, err
	}
	pool.SetMaxOpenConns(load.writers)
	pool.SetMaxIdleConns(load.writers)
	if _, err := writeAll(ctx, a.DB, load.writers, 10); err != nil { // opens connections
		return c, err
	}
	before, onWire, captures := a.primary().Queries, t.questions.Load(), a.ryw.Status().Captures
	if c.took, err = writeAll(ctx, a.DB, load.writers, load.each); err != nil {
		return c, err
	}
	c.commits = int64(load.writers * load.each)
	c.queries, c.onWire = a.primary().Queries-before, t.questions.Load()-onWire
	if have := a.ryw.Status().Captures - captures; have != c.commits {
		return c, fmt.Errorf("captured positions: have %d, want %d, one for each commit", have, c.commits)
	}
	// A background probe may be counted and not have passed yet, or the reverse.
	if d := c.queries - c.onWire; d < -2 || d > 2 {
		return c, fmt.Errorf("position queries: the library counts %d, on the wire there were %d", c.queries, c.onWire)
	}
	return c, nil
}

func writeAll(ctx context.Context, db *gorm.DB, writers, each int) (time.Duration, error) {
	began := time.Now()
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { errs[i] = create(db.WithContext(ctx), each) })
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}
