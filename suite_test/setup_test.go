package suite_test

import (
	"log/slog"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// beside installs the plugin beside a dbresolver of the application's own.
type beside struct {
	pluginFirst bool
	replicas    int
	trust       bool
	prepare     bool
	foreign     bool // a policy that is not ours
	window      time.Duration
	tables      []any
}

func (o beside) open() *app {
	GinkgoHelper()
	ryw := rywplugin.New(rywplugin.Config{TrustPools: o.trust, Window: o.window, Logger: slog.New(slog.DiscardHandler)})
	cfg := dbresolver.Config{Replicas: dialectors(cluster)[:o.replicas], Policy: ryw.Policy()}
	if o.foreign {
		cfg.Policy = dbresolver.RandomPolicy{}
	}
	dr := dbresolver.Register(cfg, o.tables...)
	db := openGORM(cluster.Primary(), &gorm.Config{PrepareStmt: o.prepare})
	if o.pluginFirst {
		Expect(db.Use(ryw)).To(Succeed())
		Expect(db.Use(dr)).To(Succeed())
	} else {
		Expect(db.Use(dr)).To(Succeed())
		Expect(db.Use(ryw)).To(Succeed())
	}
	closeReplicas(db)
	DeferCleanup(ryw.Close)
	return &app{DB: db, ryw: ryw}
}

var _ = Describe("Beside an existing dbresolver", func() {
	sets := map[string]beside{
		"dbresolver first, two replicas":              {replicas: 2, trust: true},
		"dbresolver first, one replica":               {replicas: 1, trust: true},
		"plugin first, two replicas":                  {pluginFirst: true, replicas: 2, trust: true},
		"plugin first, one replica":                   {pluginFirst: true, replicas: 1, trust: true},
		"prepared statements":                         {replicas: 2, trust: true, prepare: true},
		"prepared statements, plugin first":           {pluginFirst: true, replicas: 2, trust: true, prepare: true},
		"a policy of dbresolver's own":                {replicas: 2, trust: true, foreign: true},
		"a policy of dbresolver's own, prepared":      {replicas: 2, trust: true, foreign: true, prepare: true},
		"a resolver for one table":                    {replicas: 2, trust: true, tables: []any{&Item{}}},
		"a resolver for one table, plugin first":      {pluginFirst: true, replicas: 2, trust: true, tables: []any{"items"}},
		"a resolver for one table, one replica, late": {pluginFirst: true, replicas: 1, trust: true, tables: []any{&Item{}}},
	}
	for name, o := range sets {
		Context(name, func() {
			It("reads its writes, from a replica once one has them", func(ctx SpecContext) {
				a, id := o.open(), seed(ctx)
				c := session.NewContext(ctx, session.New())
				readFrom(a.WithContext(c), id, true)
				pauseAll(ctx)
				bump(a.WithContext(c), id)
				it, tx := read(a.WithContext(c), id)
				Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
				heal(ctx, cluster)
				readFrom(a.WithContext(c), id, true)
			})

			It("sees the commits of transactions that the application begins, whichever way", func(ctx SpecContext) {
				a, id := o.open(), seed(ctx)
				readFrom(a.Scopes(scopes.StaleOK()), id, true)
				pauseAll(ctx)
				want := int64(1)
				for _, begin := range []func(db *gorm.DB) *gorm.DB{
					func(db *gorm.DB) *gorm.DB { return db.Begin() },
					func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Write).Begin() },
				} {
					c := session.NewContext(ctx, session.New())
					tx := begin(a.WithContext(c))
					Expect(tx.Exec("update items set v = v + 1 where id = ?", id).Error).To(Succeed())
					Expect(tx.Commit().Error).To(Succeed())
					want++
					it, q := read(a.WithContext(c), id)
					Expect(it.V).To(Equal(want), rywplugin.Explain(q).String())
				}
			})

			It("keeps to the primary what asks for it", func(ctx SpecContext) {
				a, id := o.open(), seed(ctx)
				it, _ := read(a.DB, id)
				Expect(it.Replica).To(BeFalse())
				it, _ = read(a.Scopes(scopes.StaleOK()).Clauses(dbresolver.Write), id)
				Expect(it.Replica).To(BeFalse())
			})
		})
	}

	It("serves no token reads from pools it did not open, unless told to trust them", func(ctx SpecContext) {
		a, id := beside{replicas: 2}.open(), seed(ctx)
		readFrom(a.Scopes(scopes.StaleOK()), id, true)
		tok := rywplugin.Token(bump(a.DB, id))
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		if road == "rywpgx" {
			// The driver proves its connections, whoever opened the pool.
			Expect(readFrom(a.Scopes(scopes.ReadYourWrites(tok)), id, true).V).To(BeEquivalentTo(2))
			return
		}
		it, tx := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
		Expect(it.V).To(BeEquivalentTo(2))
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.NoneProven))
		Expect(a.ryw.Status().Nodes[1].Reason).To(ContainSubstring("not opened by this plugin"))
	})

	It("refuses Replicas when dbresolver is there already", func() {
		db := newPlain()
		Expect(db.Use(rywplugin.New(rywplugin.Config{Replicas: dialectors(cluster)}))).To(MatchError(rywplugin.ErrConfig))
	})
})
