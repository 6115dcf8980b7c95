package suite_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

var _ = Describe("Sources beyond the default one", func() {
	Context("of the same cluster", func() {
		var a *app
		var id int64
		for mode, option := range modes {
			It("capture every way to write, "+mode, func(ctx SpecContext) {
				id = plant(ctx, 1)[0]
				a = openWith(func(dbresolver.Policy) *dbresolver.DBResolver {
					return dbresolver.Register(dbresolver.Config{
						Sources:  []gorm.Dialector{dialector(cluster.Primary()), dialector(cluster.Primary())},
						Replicas: dialectors(cluster), Policy: inTurn(),
					})
				}, option)
				awaitReplicas(a, id, &Tree{})
				pauseAll(ctx)
				var sessions []context.Context
				var ids []int64
				for _, w := range writes {
					id := newID.Add(1)
					primarySQL(ctx, "insert into items (id, v) values ($1, 1)", id)
					c, s := withSession(ctx)
					Expect(w.write(c, a.DB, id)).To(Succeed())
					Expect(hasWrite(s.Token())).To(BeTrue(), "%s: %v", w.name, entries(s.Token()))
					it, tx := read(a.WithContext(c), id)
					Expect(it.V).To(BeEquivalentTo(2), "%s: %s", w.name, rywplugin.Explain(tx))
					Expect(it.Replica).To(BeFalse())
					sessions = append(sessions, c)
					ids = append(ids, id)
				}
				heal(ctx, cluster)
				for i, c := range sessions {
					By(writes[i].name)
					Expect(readFrom(a.WithContext(c), ids[i], true).V).To(BeEquivalentTo(2))
				}
			})
		}
	})

	Context("of another cluster", func() {
		var other *rywtest.Cluster
		var a *app
		open := func(ctx context.Context, option appOption) {
			GinkgoHelper()
			other = startCluster(ctx, rywtest.Options{Replicas: 1})
			createTables(ctx, other)
			conn, err := other.Primary().Conn(ctx)
			Expect(err).NotTo(HaveOccurred())
			_, err = conn.Exec(ctx, "alter table parts drop constraint fk_items_parts")
			Expect(errors.Join(err, conn.Close(ctx))).To(Succeed())
			cfg := rywplugin.Config{TrustPools: true, Logger: slog.New(slog.DiscardHandler)}
			gcfg := &gorm.Config{}
			option(gcfg, &cfg)
			ryw := rywplugin.New(cfg)
			db := openGORM(cluster.Primary(), gcfg)
			Expect(db.Use(dbresolver.Register(dbresolver.Config{Replicas: dialectors(cluster), Policy: ryw.Policy()}).
				Register(dbresolver.Config{
					Sources: []gorm.Dialector{dialector(other.Primary())}, Replicas: dialectors(other), Policy: ryw.Policy(),
				}, &Part{}))).To(Succeed())
			closeReplicas(db)
			Expect(db.Use(ryw)).To(Succeed())
			DeferCleanup(ryw.Close)
			a = &app{DB: db, ryw: ryw}
		}
		readPart := func(db *gorm.DB, id int64) Part {
			GinkgoHelper()
			var p Part
			Expect(db.Select("parts.*, "+who).Limit(1).Find(&p, id).Error).To(Succeed())
			return p
		}
		for mode, option := range modes {
			It("have an entry of their own in the token, and constrain nobody else, "+mode, func(ctx SpecContext) {
				open(ctx, option)
				id := seed(ctx)
				readFrom(a.Scopes(scopes.StaleOK()), id, true)
				part := Part{ID: newID.Add(1), Name: "a"}
				Expect(a.Create(&part).Error).To(Succeed())
				Expect(other.WaitReplicated(ctx)).To(Succeed())
				eventually("its replica answers", func() bool { return readPart(a.Scopes(scopes.StaleOK()), part.ID).Replica })

				By("writing to the other cluster")
				Expect(other.Replica(0).PauseReplay(ctx)).To(Succeed())
				c, s := withSession(ctx)
				Expect(a.WithContext(c).Model(&part).Update("name", "b").Error).To(Succeed())
				Expect(hasPosition(s.Token())).To(BeTrue())
				there := s.Token().At(0).Key
				p := readPart(a.WithContext(c), part.ID)
				Expect(p.Name).To(Equal("b"))
				Expect(p.Replica).To(BeFalse())
				readFrom(a.WithContext(c), id, true) // this cluster is not concerned

				By("writing to both in transactions, and one statement each")
				pauseAll(ctx)
				Expect(a.WithContext(c).Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, id).Error })).To(Succeed())
				tx := a.WithContext(c).Model(&Part{}).Clauses(dbresolver.Write).Begin()
				Expect(tx.Exec("update parts set name = 'c' where id = ?", part.ID).Error).To(Succeed())
				Expect(tx.Commit().Error).To(Succeed())
				tok := s.Token()
				Expect(tok.Len()).To(Equal(2))
				for i := range 2 {
					Expect(tok.At(i).Write.LSN).NotTo(BeZero())
					Expect(tok.At(i).Wrote).To(BeFalse())
				}
				Expect([]any{tok.At(0).Key, tok.At(1).Key}).To(ContainElement(there))
				it, _ := read(a.WithContext(c), id)
				Expect(it.V).To(BeEquivalentTo(2))
				Expect(readPart(a.WithContext(c), part.ID).Name).To(Equal("c"))

				By("going on with the token as text")
				heal(ctx, cluster)
				heal(ctx, other)
				text := tok.String()
				Expect(readFrom(a.Scopes(scopes.ReadYourWrites(text)), id, true).V).To(BeEquivalentTo(2))
				eventually("its replica answers", func() bool {
					p := readPart(a.Scopes(scopes.ReadYourWrites(text)), part.ID)
					Expect(p.Name).To(Equal("c"))
					return p.Replica
				})
			})
		}
	})
})

// hasWrite reports whether a token covers a write: by its position, or by a mark
// where the pool that wrote has no replicas of its own.
func hasWrite(t token.Token) bool {
	return slices.ContainsFunc(entries(t), func(e token.Entry) bool { return e.Write.LSN != 0 || e.Wrote })
}

func entries(t token.Token) (es []token.Entry) {
	for i := range t.Len() {
		es = append(es, t.At(i))
	}
	return es
}

// inTurn answers another pool whenever it is asked, so that whoever asks again for
// the pool that took a write is told a wrong one.
func inTurn() dbresolver.Policy {
	var n atomic.Int64
	return dbresolver.PolicyFunc(func(pools []gorm.ConnPool) gorm.ConnPool { return pools[n.Add(1)%int64(len(pools))] })
}
