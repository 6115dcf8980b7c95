package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// note is the row that is written and read. Replica and Server are asked of the
// server that answers, so that the report does not rest on the library's word.
type note struct {
	ID      int64 `gorm:"primaryKey"`
	V       int64
	Written time.Time
	Replica bool   `gorm:"->;-:migration"`
	Server  string `gorm:"->;-:migration"`
}

func (note) TableName() string { return "ryw_quickstart" }

const who = "ryw_quickstart.*, pg_is_in_recovery() as replica, inet_server_port()::text as server"

// apps are two applications on the same servers.
type apps struct {
	db    *gorm.DB // with the plugin
	ryw   *rywplugin.Plugin
	plain *gorm.DB // with dbresolver alone
}

func openApps(ctx context.Context, s *servers) (_ *apps, err error) {
	a := &apps{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.db, err = open(s.dsns[0]); err != nil {
		return nil, err
	}
	if err := a.db.AutoMigrate(&note{}); err != nil {
		return nil, err
	}
	a.ryw = rywplugin.New(rywplugin.Config{Replicas: replicas(s)})
	if err := a.db.Use(a.ryw); err != nil {
		return nil, err
	}
	if a.plain, err = open(s.dsns[0]); err != nil {
		return nil, err
	}
	err = a.plain.Use(dbresolver.Register(dbresolver.Config{Replicas: replicas(s)}))
	if err != nil {
		return nil, err
	}
	return a, errors.Join(a.ryw.Ready(ctx), a.awaitTable(ctx))
}

func open(dsn string) (*gorm.DB, error) {
	return gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard})
}

func replicas(s *servers) []gorm.Dialector {
	var ds []gorm.Dialector
	for _, dsn := range s.dsns[1:] {
		ds = append(ds, postgres.Open(dsn))
	}
	return ds
}

// awaitTable waits until every replica has the table: plain dbresolver would
// otherwise fail before it can be stale.
func (a *apps) awaitTable(ctx context.Context) error {
	tx := a.db.WithContext(ctx).Create(&note{ID: -1, V: 1, Written: time.Now()})
	if tx.Error != nil {
		return tx.Error
	}
	want := rywplugin.Token(tx).At(0).Write
	for {
		all := true
		for _, n := range a.ryw.Status().Nodes {
			all = all && (n.Primary || n.Position.Compare(want) >= 0)
		}
		if all {
			return nil
		}
		if err := a.ryw.Ready(ctx); err != nil {
			return err
		}
	}
}

// showOne makes one write and reads it in each way.
func (a *apps) showOne(ctx context.Context) (string, error) {
	row := note{ID: -2, V: 1, Written: time.Now()}
	tx := a.db.WithContext(ctx).Create(&row)
	if tx.Error != nil {
		return "", tx.Error
	}
	tok := rywplugin.Token(tx)
	var b strings.Builder
	fmt.Fprintf(&b, "  %-34s token %s\n", "db.Create(&row)", tok)
	for _, r := range []struct {
		name  string
		scope scopes.Scope
	}{
		{"Scopes(scopes.ReadYourWrites(tok))", scopes.ReadYourWrites(tok)},
		{"Scopes(scopes.StaleOK())", scopes.StaleOK()},
		{"Scopes(scopes.Strong())", scopes.Strong()},
	} {
		var n note
		tx := a.db.WithContext(ctx).Scopes(r.scope).Select(who).Limit(1).Find(&n, row.ID)
		if tx.Error != nil {
			return "", tx.Error
		}
		fmt.Fprintf(&b, "  %-34s %s\n", r.name, rywplugin.Explain(tx))
	}
	return b.String(), nil
}

// users is how many sessions are at work, each with a row of its own.
const users = 8

// enough is how many reads under tokens each half of the load makes at least,
// within twice the time it was given.
const enough = 1100

// load has every user write and read for a while, on both applications.
func (a *apps) load(ctx context.Context, t *tally, d time.Duration) error {
	before, _, _ := t.sum(underToken)
	began := time.Now()
	done := func() bool {
		n, _, _ := t.sum(underToken)
		return time.Since(began) >= d && n-before >= enough
	}
	ctx, cancel := context.WithTimeout(ctx, 2*d)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 2*users)
	for i := range users {
		wg.Add(2)
		go func() {
			defer wg.Done()
			errs[2*i] = repeat(ctx, done, func() error { return a.withTokens(ctx, t, int64(i)) })
		}()
		go func() {
			defer wg.Done()
			errs[2*i+1] = repeat(ctx, done, func() error { return a.withoutTokens(ctx, t, int64(users+i)) })
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// repeat repeats one user's round until it is done or ctx ends; an error because
// it ended is none.
func repeat(ctx context.Context, done func() bool, round func() error) error {
	for ctx.Err() == nil && !done() {
		if err := round(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // the user thinks
		}
	}
	return nil
}

// reads is how often a user looks after each write.
const reads = 8

// withTokens is one round of a user whose requests hand on nothing but the text
// of a token.
func (a *apps) withTokens(ctx context.Context, t *tally, id int64) error {
	var tok token.Token
	version, err := write(a.db.WithContext(rywplugin.Into(ctx, &tok)), id)
	if err != nil {
		return err
	}
	text := tok.String()
	for range reads {
		tok, err := token.Parse(text)
		if err != nil {
			return err
		}
		s := session.New(tok) // a request: another process, another replica
		n, tx, err := read(a.db.WithContext(session.NewContext(ctx, s)), id)
		if err != nil {
			return err
		}
		t.count(underToken, n, rywplugin.Explain(tx).Reason.String(), n.V < version)
		text = s.Token().String()
	}
	n, tx, err := read(a.db.WithContext(ctx).Scopes(scopes.StaleOK()), id)
	if err != nil {
		return err
	}
	t.count("stale ok", n, rywplugin.Explain(tx).Reason.String(), n.V < version)
	n, tx, err = read(a.db.WithContext(ctx).Scopes(scopes.Strong()), id)
	if err != nil {
		return err
	}
	t.count("strong", n, rywplugin.Explain(tx).Reason.String(), n.V < version)
	return nil
}

// withoutTokens is the same round on plain dbresolver.
func (a *apps) withoutTokens(ctx context.Context, t *tally, id int64) error {
	version, err := write(a.plain.WithContext(ctx), id)
	if err != nil {
		return err
	}
	for range reads {
		n, _, err := read(a.plain.WithContext(ctx), id)
		if err != nil {
			return err
		}
		t.count("plain dbresolver", n, "random replica", n.V < version)
	}
	return nil
}

// write raises the version of the user's row and returns it.
func write(db *gorm.DB, id int64) (version int64, err error) {
	err = db.Transaction(func(tx *gorm.DB) error {
		return tx.Raw(`insert into ryw_quickstart (id, v, written) values (?, 1, clock_timestamp())
			on conflict (id) do update set v = ryw_quickstart.v + 1, written = clock_timestamp() returning v`, id).
			Scan(&version).Error
	})
	return version, err
}

// read returns the user's row as some server has it, empty if it has none.
func read(db *gorm.DB, id int64) (n note, tx *gorm.DB, err error) {
	tx = db.Select(who).Limit(1).Find(&n, id)
	return n, tx, tx.Error
}

func (a *apps) close() error {
	var errs []error
	if a.ryw != nil {
		errs = append(errs, a.ryw.Close())
	}
	for _, db := range []*gorm.DB{a.db, a.plain} {
		if db == nil {
			continue
		}
		if dr, ok := db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver); ok {
			errs = append(errs, dr.Call(closePool))
		}
		if pool, err := db.DB(); err == nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

func closePool(p gorm.ConnPool) error {
	if db, ok := p.(*sql.DB); ok {
		return db.Close()
	}
	return nil
}
