package main

import (
	"context"
	"errors"
	"fmt"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// reading compares a whole First by primary key, answered by a replica, under a
// token that both replicas have replayed, with the same on plain dbresolver.
//
// read.ratio_vs_dbresolver is time, the scope made from the token each time
// included. read.extra_allocs is allocations, with the token in a session in the
// context, so that it is the library's own.
func reading(ctx context.Context, e *env, r *report) error {
	b, err := openReadBench(ctx, e)
	if err != nil {
		return err
	}
	return errors.Join(b.figures(r), b.close())
}

// readBench is the same read on two applications.
type readBench struct {
	with, plain *app

	underToken func() error // the token is the query's
	inSession  func() error // the token is the context's
	onPlain    func() error
}

func openReadBench(ctx context.Context, e *env) (b *readBench, err error) {
	b = &readBench{}
	if b.with, err = openPlugin(ctx, e.addresses(), gorm.Config{}, rywplugin.Config{}); err != nil {
		return nil, err
	}
	if b.plain, err = openPlain(e.addresses(), gorm.Config{}); err != nil {
		return nil, errors.Join(err, b.with.close())
	}
	tok, err := b.with.caughtUp(ctx)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	withSession := session.NewContext(ctx, session.New(tok))
	b.underToken = func() error { return first(b.with.WithContext(ctx).Scopes(scopes.ReadYourWrites(tok))) }
	b.inSession = func() error { return first(b.with.WithContext(withSession)) }
	b.onPlain = func() error { return first(b.plain.WithContext(ctx)) }
	_, err = alternate(2, 50, b.underToken, b.inSession, b.onPlain) // opens connections
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func first(db *gorm.DB) error {
	var row item
	return db.First(&row, seeded.ID).Error
}

func (b *readBench) close() error { return errors.Join(b.with.close(), b.plain.close()) }

func (b *readBench) figures(r *report) error {
	times, err := alternate(2000, 4, b.underToken, b.onPlain)
	if err != nil {
		return err
	}
	allocs, err := b.extraAllocs(1000)
	if err != nil {
		return err
	}
	r.figure("read.under_token.us", median(times[0])/1000, "us")
	r.figure("read.dbresolver.us", median(times[1])/1000, "us")
	r.figure("read.ratio_vs_dbresolver", ratio(times[0], times[1]), "ratio")
	r.figure("read.extra_allocs", allocs, "allocations")
	return b.allOnReplicas()
}

func (b *readBench) extraAllocs(calls int) (float64, error) {
	with, err := allocations(calls, b.inSession)
	if err != nil {
		return 0, err
	}
	without, err := allocations(calls, b.onPlain)
	return with - without, err
}

// allOnReplicas makes sure that what is compared is reads of replicas.
func (b *readBench) allOnReplicas() error {
	if n := b.with.onPrimary(); n > 0 {
		return fmt.Errorf("%d reads went to the primary under a token that both replicas have replayed", n)
	}
	return nil
}
