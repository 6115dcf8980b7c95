package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// Note is what the browser writes.
type Note struct {
	ID   int64 `gorm:"primaryKey"`
	Text string
}

// Job is written in the transaction of the note that it is about. The worker says
// in it what it saw of that note, and where.
type Job struct {
	ID      int64 `gorm:"primaryKey"`
	Payload json.RawMessage
	Done    bool
	Saw     string
	Where   string
}

// store is the database as one process has it.
type store struct {
	db  *gorm.DB
	ryw *rywplugin.Plugin
}

func openStore(ctx context.Context, c config) (*store, error) {
	db, err := gorm.Open(rywpgx.Open(c.primary), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	var replicas []gorm.Dialector
	for _, dsn := range c.replicaList() {
		replicas = append(replicas, rywpgx.Open(dsn))
	}
	// StaleOK, so that a read which has lost its token shows.
	s := &store{db: db, ryw: rywplugin.New(rywplugin.Config{Replicas: replicas, Default: rywplugin.StaleOK})}
	if err := db.Use(s.ryw); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, s.ryw.Ready(ctx)
}

func (s *store) close() error {
	err := s.ryw.Close()
	if dr, ok := s.db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver); ok {
		err = errors.Join(err, dr.Call(func(p gorm.ConnPool) error {
			if pool, ok := p.(*sql.DB); ok {
				return pool.Close()
			}
			return nil
		}))
	}
	if pool, poolErr := s.db.DB(); poolErr == nil {
		err = errors.Join(err, pool.Close())
	}
	return err
}

// save writes the note and enqueues a job about it in one transaction.
func (s *store) save(ctx context.Context, n *Note, dropToken bool) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Save(n).Error; err != nil {
			return err
		}
		payload, err := json.Marshal(map[string]any{"note": n.ID})
		if err != nil {
			return err
		}
		if !dropToken {
			// The transaction's own token: whoever gets the job gets it after the commit.
			payload, err = carrier.InjectJSON(carrier.Resume(ctx, rywplugin.Token(tx)), payload)
			if err != nil {
				return err
			}
		}
		return tx.Create(&Job{Payload: payload}).Error
	})
}

// seen is what a read of a note showed, and where it went.
type seen struct {
	Process string `json:"process"`
	Text    string `json:"text"`
	Node    string `json:"node"`
	Why     string `json:"why"`
}

func (s *store) load(ctx context.Context, id int64) (v seen, err error) {
	var n Note
	tx := s.db.WithContext(ctx).Limit(1).Find(&n, id)
	e := rywplugin.Explain(tx)
	return seen{Text: n.Text, Node: e.Node, Why: e.Reason.String()}, tx.Error
}
