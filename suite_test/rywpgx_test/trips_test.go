package rywpgx_test

import (
	"context"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// costly are the ways to write that no question can go with: asking costs one
// round trip.
var costly = map[string]bool{"several statements": true, "CopyFrom": true, "batch": true}

// trips returns how many round trips a warm connection makes for a write. It is
// the least of a few: a pool pings a connection that was idle for a second.
func trips(t *testing.T, s settings, db *gorm.DB, w func(*gorm.DB, string, int) error, tab string, v *int) int64 {
	t.Helper()
	least := int64(1 << 40)
	for range 4 {
		*v++
		n := s.wire.count(func() { must(t, w(db, tab, *v)) })
		least = min(least, n)
	}
	return least
}

func TestWritesCostNoRoundTrip(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			s.conns = 1
			plain, ours, h := s, s, newHooks()
			plain.wire, ours.wire = &wire{}, &wire{}
			h.all = &who{}
			theirDB, ourDB := plain.plain(t), ours.ours(t, h)
			theirs, v1, mine, v2 := table(t), 0, table(t), 0
			for name, w := range writes {
				want, more := trips(t, plain, theirDB, w, theirs, &v1), int64(0)
				if costly[name] {
					// One for the position, and one that the server's answer to
					// COPY makes or does not, as it comes between two packets.
					more = 2
				}
				if have := trips(t, ours, ourDB, w, mine, &v2); have < want || have > want+more {
					t.Errorf("%s: have %d round trips, want %d", name, have, want)
				}
				for _, e := range h.take() {
					placed(t, e)
				}
			}
		})
	}
}

// reads are ways to read.
var reads = map[string]func(db *gorm.DB, tab string) error{
	"Find": func(db *gorm.DB, tab string) error {
		var out []row
		return db.Table(tab).Where("v >= ?", 0).Find(&out).Error
	},
	"First": func(db *gorm.DB, tab string) error {
		var out row
		return db.Table(tab).Where("v >= ?", 0).Order("id").Take(&out).Error
	},
	"Raw": func(db *gorm.DB, tab string) error {
		var n int
		return db.Raw("select count(*) from " + tab).Scan(&n).Error
	},
	"Rows": func(db *gorm.DB, tab string) error {
		rows, err := db.Raw("select * from " + tab).Rows()
		if err != nil {
			return err
		}
		rows.Next()
		return rows.Close()
	},
	"Exec": func(db *gorm.DB, tab string) error { return db.Exec("select * from " + tab).Error },
	"read transaction": func(db *gorm.DB, tab string) error {
		return db.Transaction(func(tx *gorm.DB) error {
			var n int
			return tx.Raw("select count(*) from " + tab).Scan(&n).Error
		})
	},
}

func TestFloorsCostNoRoundTrip(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			s.conns = 1
			plain, ours, h, tab := s, s, newHooks(), table(t)
			plain.wire, ours.wire = &wire{}, &wire{}
			theirDB, ourDB := plain.plain(t), ours.ours(t, h)
			must(t, theirDB.Exec("insert into "+tab+" (v) values (1), (2), (3)").Error)
			for name, read := range reads {
				least := func(s settings, db *gorm.DB) int64 {
					n := int64(1 << 40)
					for range 4 {
						n = min(n, s.wire.count(func() { must(t, read(db, tab)) }))
					}
					return n
				}
				want := least(plain, theirDB)
				w := &who{floor: true}
				have := least(ours, ourDB.WithContext(observed(t.Context(), w)))
				events := h.take()
				if have != want || len(events) != 4 {
					t.Errorf("%s: have %d round trips and %v, want %d and 4 reads", name, have, events, want)
				}
				for _, e := range events {
					placed(t, only(t, []event{e}, rywpgx.Read))
				}
				_ = least(ours, ourDB.WithContext(observed(t.Context(), &who{})))
				for _, e := range h.take() {
					if e.Placed() || e.Outcome != rywpgx.Read || name != "read transaction" {
						t.Errorf("%s: have %v, want no position for who wants no floor", name, e)
					}
				}
			}
		})
	}
}

func TestCheckedReadsCostNoRoundTrip(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			s.conns, s.server = 1, cluster.Replica(0)
			plain, ours, h, tab := s, s, newHooks(), table(t)
			plain.wire, ours.wire = &wire{}, &wire{}
			theirDB, ourDB := plain.plain(t), ours.ours(t, h)
			query := "select count(*) from " + tab + " where v >= $1"
			want, have := int64(1<<40), int64(1<<40)
			for range 4 {
				want = min(want, plain.wire.count(func() {
					rows, err := theirDB.ConnPool.QueryContext(t.Context(), query, 0)
					must(t, err)
					must(t, rows.Close())
				}))
				have = min(have, ours.wire.count(func() {
					rows, s, err := rywpgx.Query(t.Context(), ourDB.ConnPool, anything, query, 0)
					must(t, err)
					must(t, rows.Close())
					if now := position(t); s.Position.LSN == 0 || s.Position.Compare(now) > 0 || !s.Standby {
						t.Errorf("have %+v, want the replica's position, at most %s", s, now)
					}
				}))
			}
			if have != want {
				t.Errorf("have %d round trips, want %d", have, want)
			}
		})
	}
}

func anything(watcher.Sample) error { return nil }

// The plain driver is the measure, so the measure must be right: a write in a
// transaction of its own is BEGIN, INSERT and COMMIT.
func TestWireCountsRoundTrips(t *testing.T) {
	s := settings{wire: &wire{}, conns: 1}
	db, tab, v := s.plain(t), table(t), 0
	if n := trips(t, s, db, writes["Transaction"], tab, &v); n != 3 {
		t.Errorf("have %d round trips, want 3", n)
	}
	if n := trips(t, s, db, writes["Exec"], tab, &v); n != 1 {
		t.Errorf("have %d round trips, want 1", n)
	}
	c, err := pool(t, db).Conn(context.Background())
	must(t, err)
	must(t, c.Close())
}
