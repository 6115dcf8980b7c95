package suite_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

var _ = Describe("Bad input", func() {
	DescribeTable("a token that is none makes the query fail, and nothing panics",
		func(ctx SpecContext, text string) {
			a, id := newApp(ctx), seed(ctx)
			bad := scopes.ReadYourWrites(text)
			var it Item
			Expect(a.Scopes(bad).First(&it, id).Error).To(MatchError(token.ErrInvalid))
			Expect(a.Clauses(bad.Clause()).First(&it, id).Error).To(MatchError(token.ErrInvalid))
			var v int64
			Expect(a.Scopes(bad).Raw("select 1").Row().Scan(&v)).To(MatchError(token.ErrInvalid))
			Expect(a.Clauses(bad.Clause()).Model(&Item{}).Select("v").Row().Scan(&v)).To(MatchError(token.ErrInvalid))
			_, err := a.Scopes(bad).Model(&Item{}).Rows()
			Expect(err).To(MatchError(token.ErrInvalid))
			Expect(a.WithContext(scopes.WithReadYourWrites(ctx, text)).First(&it, id).Error).To(MatchError(token.ErrInvalid))
		},
		Entry("words", "let me in"),
		Entry("half an LSN", "16/"),
		Entry("an LSN with too many digits", "123456789/0"),
		Entry("an unknown version", "r9.AAAA"),
		Entry("control characters", "r1.\r\nSet-Cookie: x"),
	)

	It("reports scopes without the plugin instead of ignoring them", func(ctx SpecContext) {
		db := openGORM(cluster.Primary(), &gorm.Config{})
		var it Item
		Expect(db.Scopes(scopes.StaleOK()).Find(&it).Error).To(MatchError(scopes.ErrNoPlugin))
		Expect(db.Clauses(scopes.Strong().Clause()).Find(&it).Error).To(MatchError(scopes.ErrNoPlugin))
		Expect(db.Model(&Item{}).Scopes(scopes.StaleOK()).Row().Scan()).To(MatchError(scopes.ErrNoPlugin))
	})

	It("reports an impossible Config from db.Use, and the same handle works afterwards", func(ctx SpecContext) {
		db := openGORM(cluster.Primary(), &gorm.Config{})
		for _, cfg := range []rywplugin.Config{
			{MaxWait: -5},
			{ProbeInterval: -1},
			{Default: policy.Default(9)},
			{Replicas: []gorm.Dialector{nil}},
			{Replicas: dialectors(cluster), TrustPools: true},
			{SafeFunctions: []string{"no good"}},
			{Replicas: []gorm.Dialector{postgres.Open("host=127.0.0.1 port=x password=secret")}},
		} {
			err := db.Use(rywplugin.New(cfg))
			Expect(err).To(HaveOccurred())
			Expect(err.Error()).NotTo(ContainSubstring("secret"))
		}
		ryw := rywplugin.New(rywplugin.Config{Replicas: dialectors(cluster)})
		Expect(db.Use(ryw)).To(Succeed())
		Expect(ryw.Close()).To(Succeed())
	})

	It("takes a token of the future for what it is: behind, the primary serves", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		it, tx := read(a.Scopes(scopes.ReadYourWrites("FFFFFF/0")), id)
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.Behind))
	})

	It("lets a token of another cluster constrain nothing here", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		foreign := token.FromEntries(token.Entry{
			Key: token.Key{System: 4711}, Write: token.Position{Timeline: 1, LSN: 1 << 60}, Minted: time.Now(),
		})
		it, _ := read(a.Scopes(scopes.ReadYourWrites(foreign)), id)
		Expect(it.Replica).To(BeTrue())
	})

	It("sends a read to the primary whose token is past its maximal age, and renews the session", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		first := rywplugin.Token(bump(a.DB, id)).At(0)
		first.Minted = time.Now().Add(-25 * time.Hour)
		s := session.New(token.FromEntries(first))
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		c := session.NewContext(ctx, s)
		it, tx := read(a.WithContext(c), id)
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.TokenAged))
		readFrom(a.WithContext(c), id, true)
	})
})

var _ = Describe("A replica that does not fit", func() {
	// with returns an application whose second replica has the given address.
	with := func(ctx SpecContext, dsn string) *app {
		return newApp(ctx, pluginConfig(func(c *rywplugin.Config) {
			c.Replicas = []gorm.Dialector{postgres.Open(cluster.Replica(0).DSN()), postgres.Open(dsn)}
		}))
	}
	reason := func(a *app) string { return a.ryw.Status().Nodes[2].Reason }
	servesRest := func(ctx SpecContext, a *app) {
		GinkgoHelper()
		id := seed(ctx)
		tok := rywplugin.Token(bump(a.DB, id))
		for range 20 {
			it, tx := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
			Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
			it, _ = read(a.Scopes(scopes.StaleOK()), id)
			Expect(it.Replica).To(BeTrue())
		}
	}

	It("is unknown, with the reason, while it is down", func(ctx SpecContext) {
		a := with(ctx, "host=127.0.0.1 port=1 user=postgres dbname=postgres sslmode=disable")
		Expect(reason(a)).To(ContainSubstring("refused"))
		servesRest(ctx, a)
	})

	It("is refused when it is the primary itself", func(ctx SpecContext) {
		a := with(ctx, cluster.Primary().DSN())
		Expect(reason(a)).To(Equal("is not a standby"))
		servesRest(ctx, a)
	})

	It("is refused when it is of another cluster", func(ctx SpecContext) {
		other := startCluster(ctx, rywtest.Options{Replicas: 1})
		a := with(ctx, other.Replica(0).DSN())
		Expect(reason(a)).To(ContainSubstring("another cluster"))
		servesRest(ctx, a)
	})

	It("leaves everything to the primary when all of them are down, and returns", func(ctx SpecContext) {
		own := startCluster(ctx, rywtest.Options{Replicas: 1})
		createTables(ctx, own)
		a := newAppOn(ctx, own)
		Expect(own.Replica(0).Stop(ctx)).To(Succeed())
		c := session.NewContext(ctx, session.New())
		id := newID.Add(1)
		Expect(a.WithContext(c).Create(&Item{ID: id, V: 1}).Error).To(Succeed())
		for range 20 {
			it, tx := read(a.WithContext(c), id)
			Expect(it.V).To(BeEquivalentTo(1), rywplugin.Explain(tx).String())
		}
		Expect(own.Replica(0).Start(ctx)).To(Succeed())
		readFrom(a.WithContext(c), id, true)
	})
})

var _ = Describe("Without replicas", func() {
	It("asks no server anything and marks a session's writes", func(ctx SpecContext) {
		db := openGORM(cluster.Primary(), &gorm.Config{})
		ryw := rywplugin.New(rywplugin.Config{})
		Expect(db.Use(ryw)).To(Succeed())
		DeferCleanup(ryw.Close)
		id := seed(ctx)
		c := session.NewContext(ctx, session.New())
		bump(db.WithContext(c), id)
		s, _ := session.FromContext(c)
		Expect(s.Token().At(0).Wrote).To(BeTrue())
		for _, n := range ryw.Status().Nodes {
			Expect(n.Queries).To(BeZero())
		}

		By("a process with replicas resolving that mark")
		a := newApp(ctx)
		pauseAll(ctx)
		bump(db.WithContext(c), id)
		it, _ := read(a.Scopes(scopes.ReadYourWrites(s.Token().String())), id)
		Expect(it.V).To(BeEquivalentTo(3))
		heal(ctx, cluster)
		readFrom(a.Scopes(scopes.ReadYourWrites(s.Token().String())), id, true)
	})
})
