package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// worker works on the jobs that writes have left.
type worker struct {
	config
	store *store
}

func runWorker(ctx context.Context, c config) (err error) {
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Println("ready") // for the parent
	w := &worker{config: c, store: s}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.next(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// next works on one job, if there is one. The queue itself is read on the primary,
// as it is locked; what the job is about comes from wherever the token allows.
func (w *worker) next(ctx context.Context) error {
	return w.store.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var j Job
		err := tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("not done").Order("id").First(&j).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		v, err := w.work(ctx, j.Payload)
		if err != nil {
			return err
		}
		return tx.Model(&j).Updates(Job{Done: true, Saw: v.Text, Where: v.Node + ": " + v.Why}).Error
	})
}

// work does with a context of its own what the payload asks for.
func (w *worker) work(ctx context.Context, payload []byte) (seen, error) {
	lax := carrier.Carrier{Missing: carrier.MissingStale} // so that a dropped token shows
	work, err := lax.ExtractJSON(ctx, payload)
	if err != nil {
		return seen{}, err
	}
	if w.drop == "worker" {
		work = ctx
	}
	var args struct{ Note int64 }
	if err := json.Unmarshal(payload, &args); err != nil {
		return seen{}, err
	}
	return w.store.load(work, args.Note)
}
