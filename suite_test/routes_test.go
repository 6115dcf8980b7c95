package suite_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var _ = Describe("Writes and transactions", func() {
	It("go to the primary under any hint", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		for _, db := range []*gorm.DB{a.Scopes(scopes.StaleOK()).Session(&gorm.Session{}), a.WithContext(scopes.WithStaleOK(ctx))} {
			bump(db, id)
			Expect(a.Scopes(scopes.StaleOK()).Exec("update items set v = v + 1 where id = ?", id).Error).To(Succeed())
			Expect(db.Create(&Part{ItemID: id, Name: "x"}).Error).To(Succeed())
		}
		it, _ := read(a.DB, id)
		Expect(it.V).To(BeEquivalentTo(5))
	})

	It("keep what is in a transaction in it", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		c := session.NewContext(ctx, session.New())
		Expect(a.WithContext(c).Transaction(func(tx *gorm.DB) error {
			bump(tx, id)
			for _, db := range []*gorm.DB{tx, tx.Scopes(scopes.StaleOK()), tx.Clauses(scopes.StaleOK().Clause())} {
				it, q := read(db, id)
				Expect(it.Replica).To(BeFalse())
				Expect(it.V).To(BeEquivalentTo(2), "the transaction's own write")
				Expect(rywplugin.Explain(q).Reason).To(Equal(policy.InTransaction))
			}
			return nil
		})).To(Succeed())
	})

	DescribeTable("read on the primary what is not provably a pure read",
		func(ctx SpecContext, query string) {
			a, id := newApp(ctx), seed(ctx)
			Expect(a.Exec("create sequence if not exists numbers").Error).To(Succeed())
			Expect(cluster.WaitReplicated(ctx)).To(Succeed())
			var got []struct{ Replica bool }
			tx := a.Scopes(scopes.StaleOK()).Raw(query, id).Find(&got)
			Expect(tx.Error).NotTo(HaveOccurred())
			Expect(got).To(HaveLen(1))
			Expect(got[0].Replica).To(BeFalse())
			Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.NotPure))
		},
		Entry("a row lock", "select pg_is_in_recovery() as replica from items where id = ? for update"),
		Entry("a row lock with a semicolon", "select pg_is_in_recovery() as replica from items where id = ? for update;"),
		Entry("skip locked", "select pg_is_in_recovery() as replica from items where id = ? for update skip locked"),
		Entry("a share lock", "select pg_is_in_recovery() as replica from items where id = ? for share"),
		Entry("a lock in a subquery", "select pg_is_in_recovery() as replica from (select * from items where id = ? for update) x"),
		Entry("a sequence", "select pg_is_in_recovery() as replica, nextval('numbers') from items where id = ?"),
		Entry("an advisory lock", "select pg_is_in_recovery() as replica, pg_try_advisory_xact_lock(1) from items where id = ?"),
		Entry("a setting", "select pg_is_in_recovery() as replica, set_config('ryw.x', 'y', true) from items where id = ?"),
		Entry("a function of the user's", "select pg_is_in_recovery() as replica, bump(id) from items where id = ?"),
	)

	It("fail on dbresolver alone, or quietly lock nothing", func(ctx SpecContext) {
		db, id := newPlain(), seed(ctx)
		var v []int64
		Expect(db.Raw("select v from items where id = ? for update skip locked", id).Find(&v).Error).
			To(MatchError(ContainSubstring("25006")))
		var replica []bool
		Expect(db.Raw("select pg_try_advisory_lock(?) and pg_is_in_recovery()", id).Find(&replica).Error).To(Succeed())
		Expect(replica).To(Equal([]bool{true}), "the lock is held on a replica, where nobody looks for it")
	})

	DescribeTable("read on a replica what is a pure read, however it begins",
		func(ctx SpecContext, query string) {
			a, id := newApp(ctx), seed(ctx)
			var got []struct{ Replica bool }
			tx := a.Scopes(scopes.StaleOK()).Raw(query, id).Find(&got)
			Expect(tx.Error).NotTo(HaveOccurred())
			Expect(got).To(HaveLen(1))
			Expect(got[0].Replica).To(BeTrue(), rywplugin.Explain(tx).String())
		},
		Entry("select", "select pg_is_in_recovery() as replica from items where id = ?"),
		Entry("with", "with x as (select * from items where id = ?) select pg_is_in_recovery() as replica from x"),
		Entry("a comment first", "/* caller=test */ select pg_is_in_recovery() as replica from items where id = ?"),
		Entry("a parenthesis first", "(select pg_is_in_recovery() as replica from items where id = ?)"),
	)

	It("lock rows on the primary through clauses", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		it, _ := read(a.Scopes(scopes.StaleOK()).Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}), id)
		Expect(it.Replica).To(BeFalse())
	})

	It("decide nothing and wait for nothing in a dry run", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		tok := rywplugin.Token(bump(a.DB, id))
		before := a.ryw.Status().Reads
		sql := a.ToSQL(func(tx *gorm.DB) *gorm.DB {
			return tx.Scopes(scopes.ReadYourWrites(tok)).Find(&[]Item{})
		})
		Expect(sql).To(ContainSubstring("SELECT"))
		Expect(a.ryw.Status().Reads).To(Equal(before))
	})
})

var _ = Describe("Lag by a delay of replay", func() {
	It("never shows a session less than it wrote, and costs the wait at most", func(ctx SpecContext) {
		for _, r := range cluster.Replicas() {
			Expect(r.SetApplyDelay(ctx, 2*time.Second)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(r.SetApplyDelay(ctx, 0)).To(Succeed()) })
		}
		a := newApp(ctx)
		id := newID.Add(1)
		c := session.NewContext(ctx, session.New())
		Expect(a.WithContext(c).Create(&Item{ID: id, V: 1}).Error).To(Succeed())
		for n := range 20 {
			bump(a.WithContext(c), id)
			it, tx := read(a.WithContext(c), id)
			Expect(it.V).To(BeEquivalentTo(n+2), rywplugin.Explain(tx).String())
			Expect(it.Replica).To(BeFalse())
		}
		it := readFrom(a.WithContext(c), id, true)
		Expect(it.V).To(BeEquivalentTo(21))
	})

	It("is what dbresolver alone shows a stale row under", func(ctx SpecContext) {
		for _, r := range cluster.Replicas() {
			Expect(r.SetApplyDelay(ctx, 2*time.Second)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(r.SetApplyDelay(ctx, 0)).To(Succeed()) })
		}
		db, id := newPlain(), newID.Add(1)
		Expect(db.Create(&Item{ID: id, V: 1}).Error).To(Succeed())
		it, _ := read(db, id)
		Expect(it.V).To(BeZero(), "the row is not there yet")
	})
})
