package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// app is an application, with the plugin or on plain dbresolver.
type app struct {
	*gorm.DB
	ryw *rywplugin.Plugin // nil on plain dbresolver
}

// addresses are connection strings of the servers, or of proxies before them.
type addresses struct {
	primary  string
	replicas []string
	rywpgx   bool // connect with rywpgx
}

// dialector connects to one address.
func (a addresses) dialector(dsn string) gorm.Dialector {
	if a.rywpgx {
		return rywpgx.Open(dsn)
	}
	return postgres.Open(dsn)
}

func (e *env) addresses() addresses {
	a := addresses{primary: e.cluster.Primary().DSN()}
	for _, r := range e.cluster.Replicas() {
		a.replicas = append(a.replicas, r.DSN())
	}
	return a
}

// via is a server's connection string with another address in it.
func via(s *rywtest.Server, addr string) (string, error) {
	u, err := url.Parse(s.DSN())
	if err != nil {
		return "", fmt.Errorf("connection string of %s: %w", s.Name(), err)
	}
	u.Host = addr
	return u.String(), nil
}

func (a addresses) dialectors() []gorm.Dialector {
	var ds []gorm.Dialector
	for _, dsn := range a.replicas {
		ds = append(ds, a.dialector(dsn))
	}
	return ds
}

// openPlugin opens an application with the plugin, which knows every server when
// it returns.
func openPlugin(ctx context.Context, at addresses, gc gorm.Config, pc rywplugin.Config) (_ *app, err error) {
	a, err := open(at, gc)
	if err != nil {
		return nil, err
	}
	pc.Replicas = at.dialectors()
	pc.Logger = slog.New(slog.DiscardHandler)
	a.ryw = rywplugin.New(pc)
	if err := errors.Join(a.Use(a.ryw), a.ryw.Ready(ctx)); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// openPlain opens the same application on dbresolver alone, with the policy it
// has by default.
func openPlain(at addresses, gc gorm.Config) (*app, error) {
	a, err := open(at, gc)
	if err != nil {
		return nil, err
	}
	err = a.Use(dbresolver.Register(dbresolver.Config{Replicas: at.dialectors(), Policy: dbresolver.RandomPolicy{}}))
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func open(at addresses, gc gorm.Config) (*app, error) {
	gc.Logger = logger.Discard
	db, err := gorm.Open(at.dialector(at.primary), &gc)
	if err != nil {
		return nil, err
	}
	return &app{DB: db}, nil
}

// pools calls f with every pool that dbresolver has.
func (a *app) pools(f func(*sql.DB) error) error {
	dr, ok := a.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver)
	if !ok {
		return nil
	}
	return dr.Call(func(p gorm.ConnPool) error {
		if db, ok := p.(*sql.DB); ok {
			return f(db)
		}
		return nil
	})
}

func (a *app) close() error {
	var errs []error
	if a.ryw != nil {
		errs = append(errs, a.ryw.Close())
	}
	errs = append(errs, a.pools((*sql.DB).Close))
	pool, err := a.DB.DB()
	if err == nil {
		err = pool.Close()
	}
	return errors.Join(append(errs, err)...)
}

// caughtUp makes a write and returns its token once every replica is known to
// have replayed it.
func (a *app) caughtUp(ctx context.Context) (token.Token, error) {
	tx := a.WithContext(ctx).Create(&item{V: 1, Name: "token"})
	if tx.Error != nil {
		return token.Token{}, tx.Error
	}
	tok := rywplugin.Token(tx)
	for !a.covers(tok.At(0).Write) {
		if err := a.ryw.Ready(ctx); err != nil {
			return token.Token{}, err
		}
	}
	return tok, nil
}

func (a *app) covers(want token.Position) bool {
	for _, n := range a.replicas() {
		if !n.Proven || n.Position.Compare(want) < 0 {
			return false
		}
	}
	return true
}

// primary is what the plugin knows of the primary.
func (a *app) primary() rywplugin.NodeStatus {
	for _, n := range a.ryw.Status().Nodes {
		if n.Primary {
			return n
		}
	}
	return rywplugin.NodeStatus{}
}

// replicas is what the plugin knows of the replicas, in their order.
func (a *app) replicas() []rywplugin.NodeStatus {
	var out []rywplugin.NodeStatus
	for _, n := range a.ryw.Status().Nodes {
		if !n.Primary {
			out = append(out, n)
		}
	}
	return out
}

// onPrimary is how many reads the primary served.
func (a *app) onPrimary() (reads int64) {
	for why, n := range a.ryw.Status().Reads {
		if why >= policy.ByStrong {
			reads += n
		}
	}
	return reads
}
