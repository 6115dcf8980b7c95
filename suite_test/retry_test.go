package suite_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
)

// onPrimary runs statements on the shared cluster's primary, by nobody's plugin, and
// waits until the replicas have them.
func onPrimary(ctx context.Context, statements ...string) {
	GinkgoHelper()
	conn, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close(ctx)
	for _, sql := range statements {
		_, err := conn.Exec(ctx, sql)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(cluster.WaitReplicated(ctx)).To(Succeed())
}

var _ = Describe("A read that a server refuses before its first row", func() {
	for _, prepare := range []bool{false, true} {
		prepared := gormConfig(func(c *gorm.Config) { c.PrepareStmt = prepare })

		It(fmt.Sprintf("is served by the primary if its table is unlogged, prepared %v", prepare), func(ctx SpecContext) {
			table := fmt.Sprintf("unlogged_%d", newID.Add(1))
			onPrimary(ctx, "create unlogged table "+table+" (v int)", "insert into "+table+" values (7)")
			DeferCleanup(func(ctx context.Context) { onPrimary(ctx, "drop table "+table) })
			a := newApp(ctx, prepared)
			for range 3 {
				var got struct {
					V       int
					Replica bool
				}
				tx := a.Scopes(scopes.StaleOK()).Table(table).Select("v, " + who).Take(&got)
				Expect(tx.Error).NotTo(HaveOccurred())
				Expect(got.V).To(Equal(7))
				Expect(got.Replica).To(BeFalse(), rywplugin.Explain(tx).String())
			}
			Expect(newPlain(prepared).Table(table).Take(&struct{ V int }{}).Error).To(HaveOccurred(), "on dbresolver alone")
		})

		It(fmt.Sprintf("is sent again if the plan that was prepared went stale, prepared %v", prepare), func(ctx SpecContext) {
			table := fmt.Sprintf("changing_%d", newID.Add(1))
			onPrimary(ctx, "create table "+table+" (v int)", "insert into "+table+" values (7)")
			DeferCleanup(func(ctx context.Context) { onPrimary(ctx, "drop table "+table) })
			a := newApp(ctx, prepared)
			for name, db := range map[string]*gorm.DB{"replica": a.Scopes(scopes.StaleOK()), "primary": a.DB} {
				db = db.Session(&gorm.Session{})
				take := func() (got map[string]any, tx *gorm.DB) {
					got = map[string]any{}
					tx = db.Table(table).Take(&got)
					return got, tx
				}
				for range 20 { // on every connection of every pool
					_, tx := take()
					Expect(tx.Error).NotTo(HaveOccurred(), name)
				}
				column := fmt.Sprintf("w_%s", name)
				onPrimary(ctx, fmt.Sprintf("alter table %s add column %s int default 9", table, column))
				for range 20 {
					got, tx := take()
					Expect(tx.Error).NotTo(HaveOccurred(), name)
					Expect(got).To(HaveKey(column), rywplugin.Explain(tx).String())
				}
			}
		})
	}
})
