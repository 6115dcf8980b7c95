package main

import (
	"context"
	"database/sql"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// ours is the library, in sessions that carry nothing but the token's text.
type ours struct{ *app }

func openOurs(ctx context.Context, s *site, _ *truth) (router, error) {
	return openLibrary(ctx, s.addresses(false))
}

func openOursPgx(ctx context.Context, s *site, _ *truth) (router, error) {
	return openLibrary(ctx, s.addresses(true))
}

func openLibrary(ctx context.Context, at addresses) (router, error) {
	a, err := openPlugin(ctx, at, gorm.Config{}, rywplugin.Config{MaxWait: waitCap})
	if err != nil {
		return nil, err
	}
	return ours{a}, a.keepIdle()
}

// keepIdle sizes all pools for the load.
func (a *app) keepIdle() error {
	pool, err := a.DB.DB()
	if err != nil {
		return err
	}
	pool.SetMaxIdleConns(idleConns)
	return a.pools(func(p *sql.DB) error { p.SetMaxIdleConns(idleConns); return nil })
}

func (o ours) do(ctx context.Context, text string, op func(db *gorm.DB) (workload.Answer, error)) (workload.Answer, error) {
	s := session.New()
	if text != "" {
		tok, err := token.Parse(text)
		if err != nil {
			return workload.Answer{}, err
		}
		s.Observe(tok)
	}
	a, err := op(o.WithContext(session.NewContext(ctx, s)))
	a.Token = s.Token().String()
	return a, err
}

func (o ours) Write(ctx context.Context, text string, key int64) (workload.Answer, error) {
	return o.do(ctx, text, func(db *gorm.DB) (workload.Answer, error) { return writeRow(db, key) })
}

// Read adds to the answer why it came from where it came from.
func (o ours) Read(ctx context.Context, text string, key int64) (workload.Answer, error) {
	return o.do(ctx, text, func(db *gorm.DB) (workload.Answer, error) {
		a, tx := readRow(db, key)
		a.Detail = rywplugin.Explain(tx)
		return a, tx.Error
	})
}
