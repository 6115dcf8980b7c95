// Package leak shows that nothing runs on after Close.
package leak

import (
	"context"
	"database/sql"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
)

// lru is the expiry of a cache of prepared statements. GORM starts one for each
// pool that dbresolver is given, used or not, and nothing ever stops it
// (gorm.NewPreparedStmtDB has a Close that closes statements only).
var lru = goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1")

type thing struct{ ID int64 }

func TestNothingRunsAfterClose(t *testing.T) {
	c, err := rywtest.Start(context.Background(), rywtest.Options{Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	down := postgres.Open("host=127.0.0.1 port=1 user=postgres dbname=postgres sslmode=disable")
	for name, replicas := range map[string][]gorm.Dialector{
		"without replicas":     nil,
		"with replicas":        {postgres.Open(c.Replica(0).DSN()), postgres.Open(c.Replica(1).DSN())},
		"with a replica down":  {postgres.Open(c.Replica(0).DSN()), down},
		"with nothing but one": {down},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			work(t, c.Primary().DSN(), replicas)
			goleak.VerifyNone(t, before, lru)
		})
	}
	t.Run("beside dbresolver", func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		besideDBResolver(t, c)
		goleak.VerifyNone(t, before, lru)
	})
}

func open(t *testing.T, dsn string) (*gorm.DB, func()) {
	t.Helper()
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	return db, func() { must(t, pool.Close()) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func work(t *testing.T, primary string, replicas []gorm.Dialector) {
	db, closeDB := open(t, primary)
	defer closeDB()
	ryw := rywplugin.New(rywplugin.Config{Replicas: replicas})
	must(t, db.Use(ryw))
	use(t, db)
	must(t, ryw.Close())
	must(t, ryw.Close()) // again does no harm
	use(t, db)           // and the primary still serves
}

func use(t *testing.T, db *gorm.DB) {
	t.Helper()
	ctx := session.NewContext(context.Background(), session.New())
	db = db.WithContext(ctx)
	must(t, db.AutoMigrate(&thing{}))
	must(t, db.Create(&thing{}).Error)
	must(t, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&thing{}).Error }))
	must(t, db.Find(&[]thing{}).Error)
	must(t, db.Scopes(scopes.StaleOK(), scopes.Strong()).Find(&[]thing{}).Error)
}

func besideDBResolver(t *testing.T, c *rywtest.Cluster) {
	db, closeDB := open(t, c.Primary().DSN())
	defer closeDB()
	ryw := rywplugin.New(rywplugin.Config{TrustPools: true})
	dr := dbresolver.Register(dbresolver.Config{
		Replicas: []gorm.Dialector{postgres.Open(c.Replica(0).DSN()), postgres.Open(c.Replica(1).DSN())},
		Policy:   ryw.Policy(),
	})
	must(t, db.Use(dr))
	must(t, db.Use(ryw))
	use(t, db)
	must(t, ryw.Close())
	must(t, dr.Call(func(p gorm.ConnPool) error {
		if pool, ok := p.(*sql.DB); ok {
			return pool.Close()
		}
		return nil
	}))
}
