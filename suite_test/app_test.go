package suite_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// Item is a versioned row. Replica and Server tell who answered, taken from the
// answer itself.
type Item struct {
	ID      int64 `gorm:"primaryKey"`
	V       int64
	Parts   []Part
	Replica bool   `gorm:"->;-:migration"`
	Server  string `gorm:"->;-:migration"`
}

// Part belongs to an item.
type Part struct {
	ID      int64 `gorm:"primaryKey"`
	ItemID  int64
	Name    string
	Replica bool   `gorm:"->;-:migration"`
	Server  string `gorm:"->;-:migration"`
}

// who asks the answering server for its role and address.
const who = "pg_is_in_recovery() as replica, host(inet_server_addr()) || ':' || inet_server_port() as server"

var newID atomic.Int64

func init() { newID.Store(rand.Int64N(1 << 40)) }

func createTables(ctx context.Context, c *rywtest.Cluster) {
	GinkgoHelper()
	db := openGORM(c.Primary(), &gorm.Config{})
	Expect(db.WithContext(ctx).AutoMigrate(&Item{}, &Part{})).To(Succeed())
	Expect(db.Exec(`create or replace function bump(item bigint) returns bigint language sql as
		$$ update items set v = v + 1 where id = item returning v $$`).Error).To(Succeed())
	Expect(c.WaitReplicated(ctx)).To(Succeed())
}

// openGORM opens a server as an application would, with its pool closed at the
// end of the spec.
func openGORM(s *rywtest.Server, cfg *gorm.Config) *gorm.DB {
	GinkgoHelper()
	if cfg.Logger == nil {
		cfg.Logger = logger.Discard
	}
	d := cfg.Dialector
	if d == nil {
		d = dialector(s)
	}
	db, err := gorm.Open(d, cfg)
	Expect(err).NotTo(HaveOccurred())
	pool, err := db.DB()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = pool.Close() })
	return db
}

// app is an application with the plugin installed.
type app struct {
	*gorm.DB
	ryw *rywplugin.Plugin
}

type appOption func(*gorm.Config, *rywplugin.Config)

func gormConfig(change func(*gorm.Config)) appOption {
	return func(c *gorm.Config, _ *rywplugin.Config) { change(c) }
}

func pluginConfig(change func(*rywplugin.Config)) appOption {
	return func(_ *gorm.Config, c *rywplugin.Config) { change(c) }
}

// newApp starts an application on the shared cluster, with every replica known.
func newApp(ctx context.Context, opts ...appOption) *app {
	GinkgoHelper()
	return newAppOn(ctx, cluster, opts...)
}

func newAppOn(ctx context.Context, c *rywtest.Cluster, opts ...appOption) *app {
	GinkgoHelper()
	cfg := rywplugin.Config{Replicas: dialectors(c), Logger: slog.New(slog.DiscardHandler)}
	gcfg := &gorm.Config{}
	for _, o := range opts {
		o(gcfg, &cfg)
	}
	a := &app{DB: openGORM(c.Primary(), gcfg), ryw: rywplugin.New(cfg)}
	Expect(a.Use(a.ryw)).To(Succeed())
	DeferCleanup(func() { Expect(a.ryw.Close()).To(Succeed()) })
	Expect(a.ryw.Ready(ctx)).To(Succeed())
	return a
}

func dialectors(c *rywtest.Cluster) []gorm.Dialector {
	var ds []gorm.Dialector
	for _, r := range c.Replicas() {
		ds = append(ds, dialector(r))
	}
	return ds
}

// road is how commits are captured: at the driver by rywpgx, or behind GORM's own
// commit on any other pool.
var road = cmp.Or(os.Getenv("RYW_ROAD"), "postgres")

func dialector(s *rywtest.Server) gorm.Dialector {
	switch road {
	case "rywpgx":
		return rywpgx.Open(s.DSN())
	case "postgres":
		return postgres.Open(s.DSN())
	}
	Fail("RYW_ROAD: have " + road + ", want postgres or rywpgx")
	return nil
}

// newPlain starts the control: the same application with dbresolver alone.
func newPlain(opts ...appOption) *gorm.DB {
	GinkgoHelper()
	gcfg := &gorm.Config{}
	for _, o := range opts {
		o(gcfg, &rywplugin.Config{})
	}
	db := openGORM(cluster.Primary(), gcfg)
	Expect(db.Use(dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster)}))).To(Succeed())
	closeReplicas(db)
	return db
}

// closeReplicas has the pools that dbresolver opened closed at the end.
func closeReplicas(db *gorm.DB) {
	dr := db.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver)
	DeferCleanup(func() {
		_ = dr.Call(func(pool gorm.ConnPool) error {
			if p, ok := pool.(*sql.DB); ok {
				return p.Close()
			}
			return nil
		})
	})
}

// seed inserts an item at version 1 everywhere and returns its id.
func seed(ctx context.Context) int64 {
	GinkgoHelper()
	id := newID.Add(1)
	conn, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "insert into items (id, v) values ($1, 1)", id)
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.WaitReplicated(ctx)).To(Succeed())
	return id
}

// read reads an item with who answered.
func read(db *gorm.DB, id int64) (Item, *gorm.DB) {
	GinkgoHelper()
	var it Item
	tx := db.Select("items.*, "+who).Limit(1).Find(&it, id)
	Expect(tx.Error).NotTo(HaveOccurred())
	return it, tx
}

// readFrom reads the item until a replica or the primary, as asked, answered, and
// returns that answer.
func readFrom(db *gorm.DB, id int64, replica bool) Item {
	GinkgoHelper()
	var it Item
	Eventually(func() bool {
		it, _ = read(db, id)
		return it.Replica == replica
	}).WithTimeout(patience).Should(BeTrue(), fmt.Sprintf("want an answer with replica=%v", replica))
	return it
}

// bump raises the version by one, in one statement.
func bump(db *gorm.DB, id int64) *gorm.DB {
	GinkgoHelper()
	tx := db.Model(&Item{}).Where("id = ?", id).Update("v", gorm.Expr("v + 1"))
	Expect(tx.Error).NotTo(HaveOccurred())
	return tx
}

// eventually waits for a condition without a fixed pause.
func eventually(what string, ok func() bool) {
	GinkgoHelper()
	Eventually(ok).WithTimeout(patience).WithPolling(time.Millisecond).Should(BeTrue(), what)
}
