package main

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// roads are the ways to open the database.
var roads = map[string]func(string) gorm.Dialector{"postgres": postgres.Open, "rywpgx": rywpgx.Open}

// What a response sets is decided by what its handler's statements really did.
func TestWhatStatementsSet(t *testing.T) {
	c, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for road, open := range roads {
		db := openOn(t, c, open)
		for name, s := range map[string]struct {
			do   func(w http.ResponseWriter, db *gorm.DB) error
			want string // the kinds of the cookies
			fail bool
		}{
			"nothing": {func(http.ResponseWriter, *gorm.DB) error { return nil }, "", false},
			"create":  {func(_ http.ResponseWriter, db *gorm.DB) error { return db.Create(&Note{Text: "x"}).Error }, "w", false},
			"raw":     {func(_ http.ResponseWriter, db *gorm.DB) error { return db.Exec("update notes set text = 'y'").Error }, "w", false},
			"read":    {func(_ http.ResponseWriter, db *gorm.DB) error { return db.Find(&[]Note{}).Error }, "f", false},
			"strong read": {func(_ http.ResponseWriter, db *gorm.DB) error {
				return db.Scopes(scopes.Strong()).Find(&[]Note{}).Error
			}, "f", false},
			"duplicate": {func(_ http.ResponseWriter, db *gorm.DB) error { return db.Create(&Note{ID: 1 << 40}).Error }, "f", true},
			"transaction": {func(_ http.ResponseWriter, db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.Create(&Note{Text: "x"}).Error })
			}, "w", false},
			"rolled back": {func(_ http.ResponseWriter, db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error {
					_ = tx.Create(&Note{Text: "x"})
					return gorm.ErrInvalidData
				})
			}, "f", true},
			"headers in a transaction": {func(w http.ResponseWriter, db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error {
					w.WriteHeader(http.StatusOK)
					return tx.Create(&Note{Text: "x"}).Error
				})
			}, "o", false},
			"only reading in a transaction": {func(_ http.ResponseWriter, db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.Find(&[]Note{}).Error }, &sql.TxOptions{ReadOnly: true})
			}, "f", false},
		} {
			t.Run(road+" "+name, func(t *testing.T) {
				resp := serveOnce(t, func(w http.ResponseWriter, r *http.Request) {
					if err := s.do(w, db.WithContext(r.Context())); (err != nil) != s.fail {
						t.Errorf("the statement: %v", err)
					}
				})
				if have := kinds(resp); have != s.want {
					t.Errorf("have cookies %q, want %q", have, s.want)
				}
				if have := resp.Header.Get(rywhttp.DefaultHeader) != ""; have != (s.want != "") {
					t.Errorf("header: have %t", have)
				}
			})
		}
	}
}

func openOn(t *testing.T, c *rywtest.Cluster, open func(string) gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(open(c.Primary().DSN()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s := &store{db: db, ryw: rywplugin.New(rywplugin.Config{Replicas: []gorm.Dialector{open(c.Replica(0).DSN())}})}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.Background()
	if err := db.Use(s.ryw); err != nil {
		t.Fatal(err)
	}
	if err := s.ryw.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.AutoMigrate(&Note{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Save(&Note{ID: 1 << 40, Text: "x"}).Error; err != nil {
		t.Fatal(err)
	}
	return db
}

// serveOnce has a handler answer one request, behind a session that has seen nothing.
func serveOnce(t *testing.T, h http.HandlerFunc) *http.Response {
	t.Helper()
	ryw, err := rywhttp.New(rywhttp.Config{Missing: rywhttp.MissingStale})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	ryw.Wrap(h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Result()
}

// kinds are the letters in the names of the cookies of a response.
func kinds(resp *http.Response) (all string) {
	for _, c := range resp.Cookies() {
		if name := strings.Split(c.Name, "-"); len(name) > 1 && c.MaxAge > 0 {
			all += name[1]
		}
	}
	return all
}
