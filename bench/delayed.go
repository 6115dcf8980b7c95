package main

import (
	"context"
	"errors"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// delayedWriting times whole writes, 0.5 ms of network each way, by turns on plain
// GORM, with the plugin, and with it on rywpgx. Each write is one of a session.
func delayedWriting(ctx context.Context, e *env, r *report) (err error) {
	t, err := newTap(e.cluster.Primary(), 500*time.Microsecond)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	at := e.addresses()
	at.primary = t.dsn
	plain, err := open(at, gorm.Config{})
	if err != nil {
		return err
	}
	apps := []*app{plain}
	defer func() {
		for _, a := range apps {
			err = errors.Join(err, a.close())
		}
	}()
	for _, driver := range []bool{false, true} {
		at.rywpgx = driver
		a, err := openPlugin(ctx, at, gorm.Config{}, rywplugin.Config{ProbeTimeout: patience, CaptureTimeout: patience})
		if err != nil {
			return err
		}
		apps = append(apps, a)
	}
	for _, w := range delayedWrites {
		times, err := e.writesByTurns(ctx, apps, w.do)
		if err != nil {
			return err
		}
		r.figure("write."+w.name+".p50.plain", median(times[0])/1e6, "ms")
		r.figure("write."+w.name+".p50_ratio", ratio(times[1], times[0]), "ratio")
		r.figure("write."+w.name+".p50_ratio.rywpgx", ratio(times[2], times[0]), "ratio")
	}
	return nil
}

var delayedWrites = []struct {
	name string
	do   func(db *gorm.DB) error
}{
	{"create", func(db *gorm.DB) error { return create(db, 1) }},
	{"transaction", func(db *gorm.DB) error {
		return db.Transaction(func(tx *gorm.DB) error { return create(tx, 2) })
	}},
	{"exec", func(db *gorm.DB) error {
		return db.Exec("insert into bench_items (v, name) values (?, ?)", 1, "written").Error
	}},
}

// writesByTurns returns the times of writes by application.
func (e *env) writesByTurns(ctx context.Context, apps []*app, write func(*gorm.DB) error) ([][]float64, error) {
	const rounds = 300
	var contenders []func() error
	for _, a := range apps {
		contenders = append(contenders, func() error {
			return write(a.WithContext(session.NewContext(ctx, session.New())))
		})
	}
	if _, err := alternate(20, 1, contenders...); err != nil { // warm-up
		return nil, err
	}
	return alternate(rounds, 1, contenders...)
}
