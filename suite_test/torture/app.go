package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// Item is a key: a versioned row. Replica and Server tell who answered, taken
// from the answer itself.
type Item struct {
	ID      int64 `gorm:"primaryKey"`
	V       int64
	Replica bool   `gorm:"->"`
	Server  string `gorm:"->"`
}

// columns asks the answering server for its role and name, too.
const columns = "items.*, pg_is_in_recovery() as replica, current_setting('cluster_name') as server"

// read says how something is read.
type read struct {
	key    int64
	raw    bool
	strong bool
	stale  bool // any state will do; outside of any session
}

// found is the answer to a read.
type found struct {
	item   Item
	reason policy.Reason
	why    string
	lost   bool // the library reported a possibly lost write
	begun  bool // of a read that failed: a row had come
}

// Ways to write.
const (
	wayImplicit = iota
	wayTransaction
	wayManual
	wayReturning
	wayAutocommit
	ways
)

// written is the answer to a write: where its commit was captured, if it was.
type written struct {
	lsn      uint64
	timeline uint32
}

// app is an application under load. What a bearer carries is honoured and carried
// on, also when the operation fails.
type app interface {
	write(ctx context.Context, b *bearer, key, version int64, way int) (written, error)
	read(ctx context.Context, b *bearer, r read) (found, error)
	// observe merges what another bearer's token said.
	observe(b *bearer, text string) error
	close() error
}

// openApp opens what the orders say.
func openApp(o *Orders) (app, error) {
	if o.Mode == modeRYW {
		return openRYW(o)
	}
	return openControl(o)
}

func dialector(road, dsn string) gorm.Dialector {
	if road == roadRYWPGX {
		return rywpgx.Open(dsn)
	}
	return postgres.Open(dsn)
}

func openGORM(o *Orders) (*gorm.DB, *sql.DB, error) {
	db, err := gorm.Open(dialector(o.Road, o.Primary), &gorm.Config{Logger: logger.Discard, PrepareStmt: o.Prepare})
	if err != nil {
		return nil, nil, err
	}
	pool, err := db.DB()
	return db, pool, err
}

func dialectors(o *Orders) []gorm.Dialector {
	var list []gorm.Dialector
	for _, dsn := range o.Replicas {
		list = append(list, dialector(o.Road, dsn))
	}
	return list
}

// rywApp uses the library as an application would.
type rywApp struct {
	db   *gorm.DB
	pool *sql.DB
	ryw  *rywplugin.Plugin
}

func openRYW(o *Orders) (app, error) {
	db, pool, err := openGORM(o)
	if err != nil {
		return nil, err
	}
	a := &rywApp{db: db, pool: pool}
	cfg := rywplugin.Config{Replicas: dialectors(o), ProbeInterval: o.Probe, Logger: slog.New(slog.DiscardHandler)}
	if o.Strict {
		cfg.Monotonic = rywplugin.MonotonicStrict
	}
	a.ryw = rywplugin.New(cfg)
	if err := db.Use(a.ryw); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, sizePools(db, o.Connections)
}

// sizePools sizes all pools for the threads of a worker: by default only two
// connections of each are kept, and the others opened anew for each operation.
func sizePools(db *gorm.DB, connections int) error {
	dr, ok := db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver)
	if !ok {
		return errors.New("dbresolver is not registered")
	}
	return dr.Call(func(pool gorm.ConnPool) error {
		p, ok := pool.(sizer)
		if c, wrapped := pool.(gorm.GetDBConnector); !ok && wrapped {
			db, err := c.GetDBConn()
			if err != nil {
				return err
			}
			p, ok = db, true
		}
		if !ok {
			return fmt.Errorf("pool is %T", pool)
		}
		p.SetMaxIdleConns(2 * threads)
		p.SetMaxOpenConns(connections)
		return nil
	})
}

type sizer interface {
	SetMaxIdleConns(n int)
	SetMaxOpenConns(n int)
}

func (a *rywApp) observe(b *bearer, text string) error { return b.observe(text) }

func (a *rywApp) close() error { return errors.Join(a.ryw.Close(), a.pool.Close()) }

func (a *rywApp) write(ctx context.Context, b *bearer, key, version int64, way int) (written, error) {
	s, err := b.session()
	if err != nil {
		return written{}, err
	}
	var own token.Token
	ctx = rywplugin.Into(ctx, &own)
	if b.how != carryHint {
		ctx = session.NewContext(ctx, s)
	}
	err = put(a.db.WithContext(ctx), key, version, way)
	if b.how == carryHint {
		s.Observe(own)
	}
	b.keep(s)
	var w written
	for _, e := range own.Entries() {
		if e.Wrote {
			continue // the position is that of a mark
		}
		w = written{lsn: uint64(e.Write.LSN), timeline: e.Write.Timeline}
	}
	return w, err
}

func (a *rywApp) read(ctx context.Context, b *bearer, r read) (found, error) {
	if r.stale {
		f, tx, err := query(a.db.WithContext(ctx).Scopes(scopes.StaleOK()), r)
		f.why = explained(tx)
		return f, err
	}
	s, err := b.session()
	if err != nil {
		return found{}, err
	}
	db := a.db.WithContext(ctx)
	if b.how == carryHint {
		db = db.Scopes(scopes.ReadYourWrites(b.text))
	} else {
		db = a.db.WithContext(session.NewContext(ctx, s))
	}
	if r.strong {
		db = db.Scopes(scopes.Strong())
	}
	f, tx, err := query(db, r)
	e := rywplugin.Explain(tx)
	if b.how == carryHint {
		s.Observe(e.Token)
	}
	b.keep(s)
	f.reason, f.why, f.lost = e.Reason, e.String(), e.PossiblyLost
	return f, err
}

func explained(tx *gorm.DB) string {
	e := rywplugin.Explain(tx)
	return e.String()
}

// errNoRow is the error of a write that met no row it could write.
var errNoRow = errors.New("no row with a lower version")

const update = "update items set v = ? where id = ? and v < ?"

// put writes a version.
func put(db *gorm.DB, key, version int64, way int) error {
	var rows int64
	exec := func(db *gorm.DB) error {
		tx := db.Exec(update, version, key, version)
		rows = tx.RowsAffected
		return tx.Error
	}
	var err error
	switch way {
	case wayTransaction:
		err = db.Transaction(exec)
	case wayManual:
		err = manually(db, exec)
	case wayReturning:
		var v []int64
		err = db.Raw(update+" returning v", version, key, version).Scan(&v).Error
		rows = int64(len(v))
	case wayAutocommit:
		err = exec(db.Session(&gorm.Session{SkipDefaultTransaction: true}))
	default:
		tx := db.Model(&Item{}).Where("id = ? and v < ?", key, version).Update("v", version)
		rows, err = tx.RowsAffected, tx.Error
	}
	if err == nil && rows != 1 {
		return fmt.Errorf("write version %d of %d: %w", version, key, errNoRow)
	}
	return err
}

func manually(db *gorm.DB, f func(*gorm.DB) error) error {
	tx := db.Begin()
	if tx.Error != nil {
		return tx.Error
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback().Error)
	}
	return tx.Commit().Error
}

// errNoItem is the error of a read that found nothing: all keys were stored, and
// replicated, before the run began.
var errNoItem = errors.New("the row is missing")

// query reads an item.
func query(db *gorm.DB, r read) (found, *gorm.DB, error) {
	var items []Item
	var tx *gorm.DB
	if r.raw {
		tx = db.Raw("select "+columns+" from items where id = ?", r.key).Find(&items)
	} else {
		tx = db.Select(columns).Where("id = ?", r.key).Find(&items)
	}
	if tx.Error != nil {
		return found{begun: len(items) > 0}, tx, tx.Error
	}
	if len(items) != 1 {
		return found{}, tx, fmt.Errorf("read %d: %w", r.key, errNoItem)
	}
	return found{item: items[0]}, tx, nil
}
