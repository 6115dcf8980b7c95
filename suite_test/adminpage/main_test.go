// Package adminpage_test looks at the plugin's page in a real browser, while real
// servers fall behind, die, are promoted and come back.
package adminpage_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Note is what the application writes and reads.
type Note struct {
	ID   int64
	Text string
}

// app is an application with the page mounted under a prefix.
type app struct {
	t       *testing.T
	servers *rywtest.Cluster
	db      *gorm.DB
	ryw     *rywplugin.Plugin
	url     string
}

func newApp(t *testing.T) *app {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 2})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	db, err := gorm.Open(rywpgx.Open(c.Primary().DSN()), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { must(t, pool.Close()) })
	a := &app{t: t, servers: c, db: db}
	a.ryw = rywplugin.New(rywplugin.Config{
		Replicas:      []gorm.Dialector{rywpgx.Open(c.Replica(0).DSN()), rywpgx.Open(c.Replica(1).DSN())},
		ProbeInterval: 100 * time.Millisecond,
		Logger:        slog.New(slog.DiscardHandler),
	})
	must(t, db.Use(a.ryw))
	t.Cleanup(func() { must(t, a.ryw.Close()) })
	must(t, db.AutoMigrate(&Note{}))
	must(t, a.ryw.Ready(ctx))
	mux := http.NewServeMux()
	mux.Handle("/admin/ryw/", http.StripPrefix("/admin/ryw", a.ryw.Handler()))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	a.url = s.URL + "/admin/ryw/"
	return a
}

// writes writes and reads it back, n times, a session each.
func (a *app) writes(n int) {
	a.t.Helper()
	for range n {
		db := a.db.WithContext(session.NewContext(a.t.Context(), session.New()))
		note := Note{Text: "a secret of the user"}
		must(a.t, db.Create(&note).Error)
		must(a.t, db.First(&note, note.ID).Error)
	}
}
