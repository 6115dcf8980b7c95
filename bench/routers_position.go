package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
	"gorm.io/gorm"
)

// positioned are routers whose token is the primary's insert position, asked for
// after each commit; choose says where a read goes that must see it.
type positioned struct {
	*handles
	choose func(ctx context.Context, want uint64) (at *gorm.DB, forget bool)
	stop   func()
}

func openPositioned(s *site, choose func(*handles) func(context.Context, uint64) (*gorm.DB, bool)) (router, error) {
	h, err := openHandles(s.addresses(false))
	if err != nil {
		return nil, err
	}
	return &positioned{handles: h, choose: choose(h), stop: func() {}}, nil
}

func (p *positioned) close() error {
	p.stop()
	return p.handles.close()
}

const (
	captureSQL = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
	replaySQL  = "select (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"
)

func (p *positioned) Write(ctx context.Context, _ string, key int64) (workload.Answer, error) {
	a, err := writeRow(p.primary.WithContext(ctx), key)
	if err != nil {
		return a, err
	}
	lsn, err := askLSN(ctx, p.primary, captureSQL)
	a.Token = strconv.FormatUint(endOfRecord(lsn), 10)
	return a, err
}

func (p *positioned) Read(ctx context.Context, token string, key int64) (workload.Answer, error) {
	if token == "" {
		return readFrom(ctx, p.any(), "", key)
	}
	want, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return workload.Answer{}, fmt.Errorf("token: %w", err)
	}
	db, forget := p.choose(ctx, want)
	if forget {
		token = ""
	}
	return readFrom(ctx, db, token, key)
}

func askLSN(ctx context.Context, db *gorm.DB, sql string) (uint64, error) {
	var lsn int64
	err := db.WithContext(ctx).Raw(sql).Scan(&lsn).Error
	return uint64(lsn), err
}

// has reports whether a replica says that it has replayed want.
func has(ctx context.Context, db *gorm.DB, want uint64) bool {
	lsn, err := askLSN(ctx, db, replaySQL)
	return err == nil && lsn >= want
}

// openOneCandidate asks one replica, drawn at random.
func openOneCandidate(_ context.Context, s *site, _ *truth) (router, error) {
	return openPositioned(s, func(h *handles) func(context.Context, uint64) (*gorm.DB, bool) {
		return func(ctx context.Context, want uint64) (*gorm.DB, bool) {
			if db := h.any(); has(ctx, db, want) {
				return db, false
			}
			return h.primary, false
		}
	})
}

// openInTurn asks one replica after the other, beginning with one drawn at random.
func openInTurn(_ context.Context, s *site, _ *truth) (router, error) {
	return openPositioned(s, func(h *handles) func(context.Context, uint64) (*gorm.DB, bool) {
		return func(ctx context.Context, want uint64) (*gorm.DB, bool) {
			first := rand.IntN(len(h.replicas))
			for i := range h.replicas {
				if db := h.replicas[(first+i)%len(h.replicas)]; has(ctx, db, want) {
					return db, false
				}
			}
			return h.primary, false
		}
	})
}

// openAllCaughtUp asks all replicas at the same time and stays on the primary until
// all have caught up; then the session is as one that never wrote.
func openAllCaughtUp(_ context.Context, s *site, _ *truth) (router, error) {
	return openPositioned(s, func(h *handles) func(context.Context, uint64) (*gorm.DB, bool) {
		return func(ctx context.Context, want uint64) (*gorm.DB, bool) {
			var missing atomic.Int32
			var all sync.WaitGroup
			for _, db := range h.replicas {
				all.Go(func() {
					if !has(ctx, db, want) {
						missing.Add(1)
					}
				})
			}
			all.Wait()
			if missing.Load() == 0 {
				return h.any(), true
			}
			return h.primary, false
		}
	})
}

// openPoll asks every replica each 100 ms in the background and goes by that.
func openPoll(_ context.Context, s *site, _ *truth) (router, error) {
	h, err := openHandles(s.addresses(false))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	known := make([]atomic.Uint64, len(h.replicas))
	var polls sync.WaitGroup
	for i, db := range h.replicas {
		polls.Go(func() { poll(ctx, db, &known[i]) })
	}
	p := &positioned{handles: h, stop: func() { cancel(); polls.Wait() }}
	p.choose = func(_ context.Context, want uint64) (*gorm.DB, bool) {
		var fresh []*gorm.DB
		for i := range known {
			if known[i].Load() >= want {
				fresh = append(fresh, h.replicas[i])
			}
		}
		if len(fresh) == 0 {
			return h.primary, false
		}
		return fresh[rand.IntN(len(fresh))], false
	}
	return p, nil
}

const pollEvery = 100 * time.Millisecond

// poll keeps what a replica says; nothing while it says nothing.
func poll(ctx context.Context, db *gorm.DB, known *atomic.Uint64) {
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for {
		lsn, err := askLSN(ctx, db, replaySQL)
		if err != nil && !errors.Is(err, context.Canceled) {
			lsn = 0
		}
		known.Store(lsn)
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}
