package suite_test

import (
	"bytes"
	"context"
	"database/sql"
	"log"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
)

// serverOf reads a tree as model and returns the address that answered.
func serverOf(db *gorm.DB, model any, id int64) (string, bool) {
	GinkgoHelper()
	var s Seen
	Expect(db.Model(model).Where("id = ?", id).Select("replica, server").Scan(&s).Error).To(Succeed())
	return s.Server, s.Replica
}

func addressOf(i int) string {
	GinkgoHelper()
	conn, err := cluster.Replica(i).Conn(context.Background())
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close(context.Background())
	var addr string
	Expect(conn.QueryRow(context.Background(), "select host(inet_server_addr()) || ':' || inet_server_port()").Scan(&addr)).To(Succeed())
	return addr
}

// byTable has one replica for leaves, by model, and twigs, by name, another for
// everything else, and the first under a name.
func byTable(p dbresolver.Policy) *dbresolver.DBResolver {
	ds := dialectors(cluster)
	return dbresolver.Register(dbresolver.Config{Replicas: ds[:1], Policy: p}, &Leaf{}, "seen_twigs", "first").
		Register(dbresolver.Config{Replicas: dialectors(cluster)[1:], Policy: p})
}

// awaitReplicas reads until replicas answer: pools of others are taken up when
// they are first used.
func awaitReplicas(a *app, id int64, models ...any) {
	GinkgoHelper()
	stale := a.Scopes(scopes.StaleOK()).Session(&gorm.Session{})
	for _, m := range models {
		eventually("a replica answers", func() bool { _, r := serverOf(stale, m, id); return r })
	}
}

var _ = Describe("Conformance to dbresolver", func() {
	Context("with several resolvers", func() {
		var a *app
		var id int64
		BeforeEach(func(ctx SpecContext) {
			id = plant(ctx, 1)[0]
			a = openWith(byTable)
			awaitReplicas(a, id, &Tree{}, &Twig{}, &Leaf{})
		})

		It("reads each table from its own replicas, by model, by name and globally", func(ctx SpecContext) {
			for range 5 {
				for _, q := range []struct {
					db    *gorm.DB
					model any
					want  int
				}{
					{a.DB, &Leaf{}, 0},
					{a.DB, &Twig{}, 0},
					{a.DB, &Tree{}, 1},
					{a.Clauses(dbresolver.Use("first")), &Tree{}, 0},
					{a.Clauses(dbresolver.Use("unknown")), &Tree{}, 1},
				} {
					server, _ := serverOf(q.db.Scopes(scopes.StaleOK()), q.model, id)
					Expect(server).To(Equal(addressOf(q.want)))
				}
			}
		})

		It("finds the table of raw SQL as dbresolver does", func(ctx SpecContext) {
			for table, want := range map[string]int{"seen_twigs": 0, "seen_items": 1} {
				var s Seen
				Expect(a.Scopes(scopes.StaleOK()).Raw("select replica, server from "+table+" where id = ?", id).Scan(&s).Error).To(Succeed())
				Expect(s.Server).To(Equal(addressOf(want)))
				Expect(a.Scopes(scopes.StaleOK()).Raw("with x as (select * from "+table+" where id = ?) select replica, server from x", id).
					Scan(&s).Error).To(Succeed())
				Expect(s.Server).To(Equal(addressOf(want)), "dbresolver takes this for a write")
			}
		})

		It("keeps each of them right under one token", func(ctx SpecContext) {
			pauseAll(ctx)
			c, _ := withSession(ctx)
			grow(a.WithContext(c), id)
			deep := func() (answers []seenV) {
				var t Tree
				Expect(a.WithContext(c).Preload("Twigs.Leaves").First(&t, id).Error).To(Succeed())
				answers, _ = answersOf(nil, t)
				return answers
			}
			Expect(deep()).To(HaveEach(seenV{V: 2}))
			Expect(cluster.Replica(0).ResumeReplay(ctx)).To(Succeed())
			eventually("the first replica serves what is its own, the primary the rest", func() bool {
				answers := deep()
				Expect(answers).To(HaveLen(3))
				Expect(answers).To(HaveEach(HaveField("V", BeEquivalentTo(2))))
				Expect(answers[0].Replica).To(BeFalse())
				return answers[1].Replica && answers[2].Replica
			})
			heal(ctx, cluster)
			eventually("both replicas serve", func() bool { return all(deep(), seenV{V: 2, Replica: true}) })
		})

		It("takes writes and transactions through Use", func(ctx SpecContext) {
			pauseAll(ctx)
			c, s := withSession(ctx)
			tx := a.WithContext(c).Clauses(dbresolver.Use("first"), dbresolver.Write).Begin()
			grow(tx, id)
			Expect(tx.Commit().Error).To(Succeed())
			Expect(hasPosition(s.Token())).To(BeTrue())
			c, s = withSession(ctx)
			Expect(a.WithContext(c).Clauses(dbresolver.Use("first")).Exec("select grow(?)", id).Error).To(Succeed())
			Expect(hasPosition(s.Token())).To(BeTrue())
			var t Tree
			Expect(a.WithContext(c).Clauses(dbresolver.Use("first")).First(&t, id).Error).To(Succeed())
			Expect(seenV{t.V, t.Replica}).To(Equal(seenV{V: 3}))
		})
	})

	DescribeTable("balances with any policy, and stays right under a token",
		func(ctx SpecContext, make func(own dbresolver.Policy) dbresolver.Policy) {
			id := plant(ctx, 1)[0]
			a := openWith(func(own dbresolver.Policy) *dbresolver.DBResolver {
				return dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster), Policy: make(own)})
			})
			awaitReplicas(a, id, &Tree{})
			seen := map[string]bool{}
			eventually("both replicas are read", func() bool {
				server, isReplica := serverOf(a.Scopes(scopes.StaleOK()), &Tree{}, id)
				seen[server] = isReplica
				return seen[addressOf(0)] && seen[addressOf(1)]
			})
			pauseAll(ctx)
			c, _ := withSession(ctx)
			for n := range int64(5) {
				grow(a.WithContext(c), id)
				var t Tree
				Expect(a.WithContext(c).First(&t, id).Error).To(Succeed())
				Expect(seenV{t.V, t.Replica}).To(Equal(seenV{V: 2 + n}))
			}
		},
		Entry("ours", func(own dbresolver.Policy) dbresolver.Policy { return own }),
		Entry("random", func(dbresolver.Policy) dbresolver.Policy { return dbresolver.RandomPolicy{} }),
		Entry("strict round robin", func(dbresolver.Policy) dbresolver.Policy { return dbresolver.StrictRoundRobinPolicy() }),
		Entry("a function", func(dbresolver.Policy) dbresolver.Policy {
			var n atomic.Int64
			return dbresolver.PolicyFunc(func(pools []gorm.ConnPool) gorm.ConnPool { return pools[n.Add(1)/3%int64(len(pools))] })
		}),
	)

	It("lets a dbresolver policy balance the plugin's own replicas", func(ctx SpecContext) {
		id := plant(ctx, 1)[0]
		a := newApp(ctx, pluginConfig(func(c *rywplugin.Config) {
			c.Balancer = policy.Resolver(dbresolver.PolicyFunc(func(pools []gorm.ConnPool) gorm.ConnPool { return pools[1] }))
		}))
		for range 20 {
			server, _ := serverOf(a.Scopes(scopes.StaleOK()), &Tree{}, id)
			Expect(server).To(Equal(addressOf(1)))
		}
	})

	Context("in trace mode", func() {
		var out lockedBuffer
		var a *app
		var id int64
		BeforeEach(func(ctx SpecContext) {
			out.Reset()
			id = plant(ctx, 1)[0]
			a = openWith(func(p dbresolver.Policy) *dbresolver.DBResolver {
				return dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster), Policy: p, TraceResolverMode: true})
			}, gormConfig(func(c *gorm.Config) {
				c.Logger = logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Info})
			}))
			awaitReplicas(a, id, &Tree{})
		})

		DescribeTable("says where a statement went", func(ctx SpecContext, want string, do func(db *gorm.DB) error) {
			out.Reset()
			Expect(do(a.Session(&gorm.Session{}))).To(Succeed())
			Expect(out.String()).To(ContainSubstring("["+want+"]"), "whatever dbresolver had chosen")
		},
			Entry("a read on a replica", "replica", func(db *gorm.DB) error {
				return db.Scopes(scopes.StaleOK()).First(&Tree{}).Error
			}),
			Entry("a read on the primary", "source", func(db *gorm.DB) error {
				return db.First(&Tree{}).Error
			}),
			Entry("a read in raw SQL that dbresolver takes for a write", "replica", func(db *gorm.DB) error {
				return db.Scopes(scopes.StaleOK()).Raw("with x as (select 1 as id) select * from x").Find(&Tree{}).Error
			}),
			Entry("a write that dbresolver takes for a read", "source", func(db *gorm.DB) error {
				return db.Scopes(scopes.StaleOK()).Raw("select nextval('road_seq') as id").Find(&Tree{}).Error
			}),
			Entry("Exec of a select", "source", func(db *gorm.DB) error { return db.Exec("select grow(-1)").Error }),
			Entry("a write", "source", func(db *gorm.DB) error {
				return db.Model(&Item{}).Where("id = -1").Update("v", 1).Error
			}),
		)

		It("reads and captures as without", func(ctx SpecContext) {
			pauseAll(ctx)
			c, s := withSession(ctx)
			grow(a.WithContext(c), id)
			bump(a.WithContext(c), id)
			Expect(hasPosition(s.Token())).To(BeTrue())
			var t Tree
			Expect(a.WithContext(c).Preload("Twigs.Leaves").First(&t, id).Error).To(Succeed())
			Expect(t.V).To(BeEquivalentTo(3))
			Expect(t.Twigs[0].Leaves[0].V).To(BeEquivalentTo(2))
		})
	})

	It("hands pool settings to every pool", func(ctx SpecContext) {
		for _, a := range []*app{newApp(ctx), openWith(byTable)} {
			dr := a.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver)
			dr.SetMaxOpenConns(7).SetMaxIdleConns(3).SetConnMaxLifetime(time.Hour).SetConnMaxIdleTime(time.Minute)
			pools := 0
			Expect(dr.Call(func(pool gorm.ConnPool) error {
				pools++
				Expect(pool.(interface{ Stats() sql.DBStats }).Stats().MaxOpenConnections).To(Equal(7))
				return nil
			})).To(Succeed())
			Expect(pools).To(BeNumerically(">=", 3))
			pool, err := a.DB.DB()
			Expect(err).NotTo(HaveOccurred())
			Expect(pool.Stats().MaxOpenConnections).To(Equal(7))
		}
	})

	It("bounds the connections of the pools that are read by those settings", func(ctx SpecContext) {
		a, id := newApp(ctx), plant(ctx, 1)[0]
		dr := a.Plugins["gorm:db_resolver"].(*dbresolver.DBResolver)
		var held []*sql.Conn
		Expect(dr.SetMaxOpenConns(1).Call(func(pool gorm.ConnPool) error {
			conn, err := pool.(interface {
				Conn(ctx context.Context) (*sql.Conn, error)
			}).Conn(ctx)
			held = append(held, conn)
			return err
		})).To(Succeed())
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		Expect(a.WithContext(short).Scopes(scopes.StaleOK()).First(&Tree{}, id).Error).To(MatchError(context.DeadlineExceeded))
		for _, conn := range held {
			Expect(conn.Close()).To(Succeed())
		}
		_, isReplica := serverOf(a.Scopes(scopes.StaleOK()), &Tree{}, id)
		Expect(isReplica).To(BeTrue())
	})

	for _, pluginFirst := range []bool{false, true} {
		name := map[bool]string{false: "dbresolver first", true: "plugin first"}[pluginFirst]
		It("takes up what is registered later, "+name, func(ctx SpecContext) {
			id := plant(ctx, 1)[0]
			ryw := rywplugin.New(rywplugin.Config{TrustPools: true, Logger: slog.New(slog.DiscardHandler)})
			dr := dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster)[:1], Policy: ryw.Policy()})
			db := openGORM(cluster.Primary(), &gorm.Config{})
			plugins := []gorm.Plugin{dr, ryw}
			if pluginFirst {
				plugins = []gorm.Plugin{ryw, dr}
			}
			for _, p := range plugins {
				Expect(db.Use(p)).To(Succeed())
			}
			closeReplicas(db)
			DeferCleanup(ryw.Close)
			a := &app{DB: db, ryw: ryw}
			awaitReplicas(a, id, &Tree{})
			dr.Register(dbresolver.Config{Replicas: dialectors(cluster)[1:], Policy: ryw.Policy()}, &Leaf{})
			awaitReplicas(a, id, &Leaf{})
			server, _ := serverOf(a.Scopes(scopes.StaleOK()), &Leaf{}, id)
			Expect(server).To(Equal(addressOf(1)))
			pauseAll(ctx)
			c, s := withSession(ctx)
			grow(a.WithContext(c), id)
			Expect(hasPosition(s.Token())).To(BeTrue())
			var l Leaf
			Expect(a.WithContext(c).First(&l, id).Error).To(Succeed())
			Expect(seenV{l.V, l.Replica}).To(Equal(seenV{V: 2}))
		})
	}

	It("is installed once, however often dbresolver initialises it", func(ctx SpecContext) {
		a, id := beside{replicas: 2, pluginFirst: true, trust: true}.open(), plant(ctx, 1)[0]
		awaitReplicas(a, id, &Tree{})
		Expect(a.ryw.Initialize(a.DB)).To(Succeed())
		Expect(a.ryw.Ready(ctx)).To(Succeed())
		st := a.ryw.Status()
		Expect(st.Nodes).To(HaveLen(3))
		before := st.Captures
		c, _ := withSession(ctx)
		grow(a.WithContext(c), id)
		Expect(a.ryw.Status().Captures).To(Equal(before+1), "captured once")
		reads := func() (n int64) {
			for _, count := range a.ryw.Status().Reads {
				n += count
			}
			return n
		}
		counted := reads()
		Expect(a.WithContext(c).First(&Tree{}, id).Error).To(Succeed())
		Expect(reads()).To(Equal(counted+1), "decided once")
	})

	It("works after a Use of dbresolver that failed, tried again with another", func(ctx SpecContext) {
		id := plant(ctx, 1)[0]
		ryw := rywplugin.New(rywplugin.Config{TrustPools: true, Logger: slog.New(slog.DiscardHandler)})
		db := openGORM(cluster.Primary(), &gorm.Config{})
		Expect(db.Use(ryw)).To(Succeed())
		DeferCleanup(ryw.Close)
		down := postgres.Open("host=127.0.0.1 port=1 user=postgres dbname=postgres sslmode=disable")
		Expect(db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{down}, Policy: ryw.Policy()}))).NotTo(Succeed())
		a := &app{DB: db, ryw: ryw}
		c, _ := withSession(ctx)
		grow(a.WithContext(c), id) // meanwhile everything is the primary's
		var t Tree
		Expect(a.WithContext(c).First(&t, id).Error).To(Succeed())
		Expect(seenV{t.V, t.Replica}).To(Equal(seenV{V: 2}))

		Expect(db.Use(dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster), Policy: ryw.Policy()}))).To(Succeed())
		closeReplicas(db)
		awaitReplicas(a, id, &Tree{})
		pauseAll(ctx)
		grow(a.WithContext(c), id)
		Expect(a.WithContext(c).First(&t, id).Error).To(Succeed())
		Expect(seenV{t.V, t.Replica}).To(Equal(seenV{V: 3}))
	})

	It("installs the plugin after a Use of it that failed", func(ctx SpecContext) {
		db := newPlain()
		Expect(db.Use(rywplugin.New(rywplugin.Config{Replicas: dialectors(cluster)}))).To(MatchError(rywplugin.ErrConfig))
		ryw := rywplugin.New(rywplugin.Config{TrustPools: true, Logger: slog.New(slog.DiscardHandler)})
		Expect(db.Use(ryw)).To(Succeed())
		DeferCleanup(ryw.Close)
		a, id := &app{DB: db, ryw: ryw}, plant(ctx, 1)[0]
		awaitReplicas(a, id, &Tree{})
		pauseAll(ctx)
		c, s := withSession(ctx)
		grow(a.WithContext(c), id)
		Expect(hasPosition(s.Token())).To(BeTrue(), "%v", entries(s.Token()))
		var t Tree
		Expect(a.WithContext(c).First(&t, id).Error).To(Succeed())
		Expect(seenV{t.V, t.Replica}).To(Equal(seenV{V: 2}))
	})
})

// lockedBuffer collects what loggers write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}
