package rywplugin

import (
	"log/slog"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// pgxpool, database/sql and dbresolver end these by themselves, some time after
// the pool was closed; nothing can wait for them.
var poolsOwn = []string{
	"database/sql.(*DB).connectionOpener", "database/sql.(*DB).connectionCleaner",
	// dbresolver keeps a store of prepared statements for each pool and never
	// closes it.
	"gorm.io/gorm/internal/lru",
}

// open is gorm.Open on a fake server, which is closed with the test.
func open(t *testing.T, s *fakepg.Server) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.Open(s.DSN()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pool, err := db.DB(); err == nil {
			_ = pool.Close()
		}
	})
	return db
}

// use is db.Use, which must not fail. The plugin is closed with the test.
func use(t *testing.T, db *gorm.DB, cfg Config) *Plugin {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := New(cfg)
	t.Cleanup(func() { _ = p.Close() })
	if err := db.Use(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func dialectors(servers ...*fakepg.Server) []gorm.Dialector {
	var ds []gorm.Dialector
	for _, s := range servers {
		ds = append(ds, postgres.Open(s.DSN()))
	}
	return ds
}
