package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"gorm.io/gorm"
)

// writing counts how often a Create waits for the network, between application
// and primary. With the plugin that includes the watcher's own connections, which
// capture the position.
func writing(ctx context.Context, e *env, r *report) error {
	trips, err := e.roundTrips(ctx, 500)
	if err != nil {
		return err
	}
	r.figure("write.round_trips", trips.with, "round trips")
	r.figure("write.round_trips.dbresolver", trips.without, "round trips")
	r.figure("write.extra_round_trips", trips.with-trips.without, "round trips")
	r.figure("write.extra_round_trips.rywpgx", trips.rywpgx-trips.without, "round trips")
	return nil
}

// patience is a timeout that is not meant to pass.
const patience = 20 * time.Second

// roundTrips are per write: with the plugin, with it on rywpgx, and without it.
type roundTrips struct{ with, rywpgx, without float64 }

func (e *env) roundTrips(ctx context.Context, writes int) (t roundTrips, err error) {
	t.without, err = e.countTrips(writes, func(at addresses) (*app, error) {
		return openPlain(at, gorm.Config{})
	})
	if err != nil {
		return t, err
	}
	with := func(driver bool) (float64, error) {
		return e.countTrips(writes, func(at addresses) (*app, error) {
			at.rywpgx = driver
			// Nothing is to be counted but what the writes cause, however slow the
			// machine is.
			return openPlugin(ctx, at, gorm.Config{}, rywplugin.Config{
				ProbeInterval: time.Hour, ProbeTimeout: patience, CaptureTimeout: patience,
			})
		})
	}
	if t.with, err = with(false); err != nil {
		return t, err
	}
	t.rywpgx, err = with(true)
	return t, err
}

// countTrips counts the round trips of writes, by all connections to the primary.
func (e *env) countTrips(writes int, openApp func(addresses) (*app, error)) (perWrite float64, err error) {
	t, err := newTap(e.cluster.Primary(), 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	at := e.addresses()
	at.primary = t.dsn
	a, err := openApp(at)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	const warmUp = 50 // connections are opened and statements prepared
	if err := create(a.DB, warmUp); err != nil {
		return 0, err
	}
	before := t.Counters()
	if err := create(a.DB, writes); err != nil {
		return 0, err
	}
	after := t.Counters()
	if after.Connections != before.Connections {
		return 0, fmt.Errorf("connections: have %d, want the %d there were before", after.Connections, before.Connections)
	}
	return float64(after.RoundTrips-before.RoundTrips) / float64(writes), nil
}

func create(db *gorm.DB, n int) error {
	for range n {
		if err := db.Create(&item{V: 1, Name: "written"}).Error; err != nil {
			return err
		}
	}
	return nil
}
