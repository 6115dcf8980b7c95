package suite_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

var _ = Describe("Monotonic reads", func() {
	// ahead pauses one replica, writes, and waits until the other one shows it.
	ahead := func(ctx SpecContext, a *app, id int64) {
		GinkgoHelper()
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		Expect(cluster.Replica(1).PauseReplay(ctx)).To(Succeed())
		bump(a.DB, id)
		eventually("the replica that goes on replays the write", func() bool {
			lsn, err := cluster.Primary().Position(ctx)
			Expect(err).NotTo(HaveOccurred())
			have, err := cluster.Replica(0).Position(ctx)
			Expect(err).NotTo(HaveOccurred())
			return have >= lsn
		})
	}

	It("never goes from a replica to one that is behind it", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		ahead(ctx, a, id)
		for range 50 {
			c := session.NewContext(ctx, session.New())
			first, _ := read(a.WithContext(c), id)
			for range 4 {
				it, tx := read(a.WithContext(c), id)
				Expect(it.V).To(BeNumerically(">=", first.V), rywplugin.Explain(tx).String())
				first = it
			}
		}
	})

	It("is broken without a session: StaleOK goes back and forth", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		ahead(ctx, a, id)
		seen := map[int64]bool{}
		for range 200 {
			it, _ := read(a.Scopes(scopes.StaleOK()), id)
			seen[it.V] = true
		}
		Expect(seen).To(HaveLen(2), "both versions are to be seen")
	})

	It("never goes from the primary to a replica that is behind it", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		bump(a.DB, id)
		c := session.NewContext(ctx, session.New())
		it, _ := read(a.WithContext(c).Scopes(scopes.Strong()), id)
		Expect(it.V).To(BeEquivalentTo(2))
		it, tx := read(a.WithContext(c), id)
		Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
	})

	It("holds across processes, as text, for a read of a replica", func(ctx SpecContext) {
		a, b, id := newApp(ctx), newApp(ctx), seed(ctx)
		ahead(ctx, a, id)
		for range 20 {
			c := session.NewContext(ctx, session.New())
			it := readFrom(a.WithContext(c), id, true)
			s, _ := session.FromContext(c)
			for range 5 {
				other, tx := read(b.Scopes(scopes.ReadYourWrites(s.Token().String())), id)
				Expect(other.V).To(BeNumerically(">=", it.V), rywplugin.Explain(tx).String())
			}
		}
	})

	It("holds across processes, as text, for a read of the primary", func(ctx SpecContext) {
		a, b, id := newApp(ctx), newApp(ctx), seed(ctx)
		pauseAll(ctx)
		bump(a.DB, id)
		tx := a.Scopes(scopes.Strong()).Select("items.*, "+who).Find(&Item{}, id)
		Expect(tx.Error).NotTo(HaveOccurred())
		it, _ := read(b.Scopes(scopes.ReadYourWrites(rywplugin.Token(tx).String())), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})

	It("frees the choice of node once the watcher has asked the node that was read", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		c := session.NewContext(ctx, session.New())
		servers := map[string]bool{}
		for tries := 0; len(servers) < 2; tries++ {
			Expect(tries).To(BeNumerically("<", 30), "the session stays on one replica")
			it, _ := read(a.WithContext(c), id)
			Expect(it.Replica).To(BeTrue())
			servers[it.Server] = true
			Expect(a.ryw.Ready(ctx)).To(Succeed()) // asks each node, after the read
		}
	})

	It("reads parent and preloads on one node", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		Expect(a.Create(&Part{ItemID: id, Name: "a"}).Error).To(Succeed())
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
		for range 50 {
			var it Item
			tx := a.Scopes(scopes.StaleOK()).Select("items.*, "+who).
				Preload("Parts", func(db *gorm.DB) *gorm.DB { return db.Select("parts.*, " + who) }).First(&it, id)
			Expect(tx.Error).NotTo(HaveOccurred())
			Expect(it.Parts).To(HaveLen(1))
			Expect(it.Parts[0].Server).To(Equal(it.Server))
		}
	})
})

var _ = Describe("What a query asks for", func() {
	It("is the primary by default, for a read with neither hint nor session", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		it, tx := read(a.DB, id)
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.ByDefault))
	})

	It("is any replica where Default says so, as with dbresolver alone", func(ctx SpecContext) {
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.Default = rywplugin.StaleOK })), seed(ctx)
		it, _ := read(a.DB, id)
		Expect(it.Replica).To(BeTrue())
	})

	It("is any replica under StaleOK, however far behind", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		bump(a.DB, id)
		it, _ := read(a.Scopes(scopes.StaleOK()), id)
		Expect(it.Replica).To(BeTrue())
		Expect(it.V).To(BeEquivalentTo(1))
	})

	It("is not a replica that is staler than MaxStaleness allows", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		bounded := func() (Item, *gorm.DB) { return read(a.Scopes(scopes.StaleOK(scopes.MaxStaleness(1))), id) }
		Eventually(func() bool { it, _ := bounded(); return it.Replica }).WithTimeout(patience).
			Should(BeTrue(), "a replica that keeps up is within any bound")
		pauseAll(ctx)
		bump(a.DB, id)
		it, tx := bounded()
		Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
	})

	It("lets StaleOK on the query, not in the context, hide the session's writes", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		c := session.NewContext(ctx, session.New())
		bump(a.WithContext(c), id)
		it, _ := read(a.WithContext(scopes.WithStaleOK(c)), id)
		Expect(it.V).To(BeEquivalentTo(2))
		it, _ = read(a.WithContext(c).Scopes(scopes.StaleOK()), id)
		Expect(it.V).To(BeEquivalentTo(1))
	})

	It("adds a token to the session's own", func(ctx SpecContext) {
		a, mine, yours := newApp(ctx), seed(ctx), seed(ctx)
		pauseAll(ctx)
		c := session.NewContext(ctx, session.New())
		bump(a.WithContext(c), mine)
		tok := rywplugin.Token(bump(a.DB, yours))
		for _, id := range []int64{mine, yours} {
			it, _ := read(a.WithContext(c).Scopes(scopes.ReadYourWrites(tok)), id)
			Expect(it.V).To(BeEquivalentTo(2))
		}
	})

	It("is understood as a clause, in generics, and from the context", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		tok := rywplugin.Token(bump(a.DB, id))
		got, err := gorm.G[Item](a.DB, scopes.ReadYourWrites(tok).Clause()).Where("id = ?", id).First(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.V).To(BeEquivalentTo(2))
		got, err = gorm.G[Item](a.DB, scopes.StaleOK().Clause()).Where("id = ?", id).First(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.V).To(BeEquivalentTo(1))
		it, _ := read(a.WithContext(scopes.WithReadYourWrites(ctx, tok)), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})

	It("accepts a bare LSN", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		bump(a.DB, id)
		lsn, err := cluster.Primary().Position(ctx)
		Expect(err).NotTo(HaveOccurred())
		it, _ := read(a.Scopes(scopes.ReadYourWrites(lsn.String())), id)
		Expect(it.V).To(BeEquivalentTo(2))
		heal(ctx, cluster)
		readFrom(a.Scopes(scopes.ReadYourWrites(lsn.String())), id, true)
	})

	It("is any healthy replica for an empty token", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		it, _ := read(a.Scopes(scopes.ReadYourWrites("")), id)
		Expect(it.Replica).To(BeTrue())
	})
})
