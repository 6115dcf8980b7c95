package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// Order is what is written.
type Order struct {
	ID   int64
	Item string
}

// ShipOrder is the job: the order's id, and the token of the write.
type ShipOrder struct {
	OrderID int64       `json:"order_id"`
	Token   token.Token `json:"consistency_token,omitzero"`
}

// Kind implements river.JobArgs.
func (ShipOrder) Kind() string { return "ship_order" }

// work is what a job saw.
type work struct{ item, node, why string }

// shop is an application with orders and workers.
type shop struct {
	db     *gorm.DB
	ryw    *rywplugin.Plugin
	river  *river.Client[*sql.Tx]
	worked chan work
}

func openShop(ctx context.Context, c *rywtest.Cluster) (s *shop, err error) {
	s = &shop{worked: make(chan work, 100)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.db, err = gorm.Open(rywpgx.Open(c.Primary().DSN()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return s, err
	}
	cfg := rywplugin.Config{Default: rywplugin.StaleOK, MaxWait: 50 * time.Millisecond}
	for _, r := range c.Replicas() {
		cfg.Replicas = append(cfg.Replicas, rywpgx.Open(r.DSN()))
	}
	s.ryw = rywplugin.New(cfg)
	if err := s.db.Use(s.ryw); err != nil {
		return s, err
	}
	if err := errors.Join(s.db.AutoMigrate(&Order{}), s.startRiver(ctx), s.ryw.Ready(ctx)); err != nil {
		return s, err
	}
	return s, c.WaitReplicated(ctx)
}

func (s *shop) startRiver(ctx context.Context) error {
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	driver := riverdatabasesql.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(s.ship))
	s.river, err = river.NewClient(driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers, PollOnly: true, FetchPollInterval: 100 * time.Millisecond,
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Middleware: []rivertype.Middleware{&resume{}},
	})
	if err != nil {
		return err
	}
	return s.river.Start(ctx)
}

// resume is the one place that takes tokens out of jobs, for workers of any kind.
type resume struct{ river.MiddlewareDefaults }

// Work implements rivertype.WorkerMiddleware.
func (*resume) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	ctx, err := jobs.ExtractJSON(ctx, job.EncodedArgs)
	if err != nil {
		return err
	}
	return inner(ctx)
}

// jobs lets jobs without a token read from anywhere, so that it shows where one was
// dropped. An application wants the zero value, or MissingRefused.
var jobs = &carrier.Carrier{Missing: carrier.MissingStale}

// place writes the order and enqueues its job in one transaction. The transaction's
// token is right for the job, which nobody sees before the commit.
func (s *shop) place(ctx context.Context, o *Order, withToken bool) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(o).Error; err != nil {
			return err
		}
		job := ShipOrder{OrderID: o.ID}
		if withToken {
			job.Token = rywplugin.Token(tx)
		}
		sqlTx, ok := tx.Statement.ConnPool.(*sql.Tx) // as rywpgx leaves it
		if !ok {
			return fmt.Errorf("transaction is %T, want *sql.Tx", tx.Statement.ConnPool)
		}
		_, err := s.river.InsertTx(ctx, sqlTx, job, nil)
		return err
	})
}

// ship works on a job: its context has the session that resume began.
func (s *shop) ship(ctx context.Context, job *river.Job[ShipOrder]) error {
	var o Order
	tx := s.db.WithContext(ctx).Limit(1).Find(&o, job.Args.OrderID)
	e := rywplugin.Explain(tx)
	s.worked <- work{item: o.Item, node: e.Node, why: e.Reason.String()}
	return tx.Error
}

func (s *shop) close() error {
	var errs []error
	if s.river != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, s.river.StopAndCancel(ctx))
	}
	if s.ryw != nil {
		errs = append(errs, s.ryw.Close())
	}
	if s.db == nil {
		return errors.Join(errs...)
	}
	if dr, ok := s.db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver); ok {
		errs = append(errs, dr.Call(func(p gorm.ConnPool) error {
			if pool, ok := p.(*sql.DB); ok {
				return pool.Close()
			}
			return nil
		}))
	}
	if pool, err := s.db.DB(); err == nil {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}
