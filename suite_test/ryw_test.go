package suite_test

import (
	"context"
	"database/sql"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// writes are the ways to commit a write; each raises an item's version by one.
var writes = []struct {
	name  string
	write func(ctx context.Context, db *gorm.DB, id int64) error
}{
	{name: "an implicit transaction", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Model(&Item{}).Where("id = ?", id).Update("v", gorm.Expr("v + 1")).Error
	}},
	{name: "an explicit transaction", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			return tx.Model(&Item{}).Where("id = ?", id).Update("v", gorm.Expr("v + 1")).Error
		})
	}},
	{name: "a nested transaction", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx2 *gorm.DB) error {
				return tx2.Exec("update items set v = v + 1 where id = ?", id).Error
			})
		})
	}},
	{name: "a manual transaction", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		tx := db.WithContext(ctx).Begin()
		if err := tx.Exec("update items set v = v + 1 where id = ?", id).Error; err != nil {
			return err
		}
		return tx.Commit().Error
	}},
	{name: "a transaction with the write in raw SQL read back", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			var v int64
			return tx.Raw("update items set v = v + 1 where id = ? returning v", id).Scan(&v).Error
		})
	}},
	{name: "autocommit", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.Session(&gorm.Session{SkipDefaultTransaction: true, Context: ctx}).
			Model(&Item{}).Where("id = ?", id).Update("v", gorm.Expr("v + 1")).Error
	}},
	{name: "Exec", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Exec("update items set v = v + 1 where id = ?", id).Error
	}},
	{name: "Raw … returning through Find", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		var it Item
		return db.WithContext(ctx).Raw("update items set v = v + 1 where id = ? returning *", id).Find(&it).Error
	}},
	{name: "Raw … returning through Scan", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		var v int64
		return db.WithContext(ctx).Raw("update items set v = v + 1 where id = ? returning v", id).Scan(&v).Error
	}},
	{name: "Raw … returning through Row", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		var v int64
		return db.WithContext(ctx).Raw("update items set v = v + 1 where id = ? returning v", id).Row().Scan(&v)
	}},
	{name: "a data-modifying CTE", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		var it Item
		return db.WithContext(ctx).Raw("with w as (update items set v = v + 1 where id = ? returning *) select * from w", id).Find(&it).Error
	}},
	{name: "a writing function", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		var v []int64
		return db.WithContext(ctx).Raw("select bump(?)", id).Find(&v).Error
	}},
	{name: "Save", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Save(&Item{ID: id, V: 2}).Error
	}},
	{name: "asynchronous commit", write: func(ctx context.Context, db *gorm.DB, id int64) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec("set local synchronous_commit = off").Error; err != nil {
				return err
			}
			return tx.Exec("update items set v = v + 1 where id = ?", id).Error
		})
	}},
}

var modes = map[string]appOption{
	"without prepared statements": gormConfig(func(*gorm.Config) {}),
	"with prepared statements":    gormConfig(func(c *gorm.Config) { c.PrepareStmt = true }),
	"without default transactions": gormConfig(func(c *gorm.Config) {
		c.SkipDefaultTransaction = true
	}),
}

var _ = Describe("Read your writes", func() {
	for mode, option := range modes {
		Context(mode, func() {
			for _, w := range writes {
				It("sees a write by "+w.name+" while no replica has it, and again on one that has", func(ctx SpecContext) {
					a, id := newApp(ctx, option), seed(ctx)
					pauseAll(ctx)

					c := session.NewContext(ctx, session.New())
					Expect(w.write(c, a.DB, id)).To(Succeed())
					it, tx := read(a.WithContext(c), id)
					Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(tx).String())
					Expect(it.Replica).To(BeFalse())

					By("handing the token on as text")
					s, _ := session.FromContext(c)
					text := s.Token().String()
					it, _ = read(a.Scopes(scopes.ReadYourWrites(text)), id)
					Expect(it.V).To(BeEquivalentTo(2))

					heal(ctx, cluster)
					Expect(readFrom(a.Scopes(scopes.ReadYourWrites(text)), id, true).V).To(BeEquivalentTo(2))
				})
			}
		})
	}

	It("is broken without the plugin: dbresolver alone reads stale", func(ctx SpecContext) {
		db, id := newPlain(), seed(ctx)
		pauseAll(ctx)
		bump(db, id)
		it, _ := read(db, id)
		Expect(it.V).To(BeEquivalentTo(1))
		Expect(it.Replica).To(BeTrue())
	})

	It("is broken with a position that is taken inside the transaction", func(ctx SpecContext) {
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.MaxWait = patience })), seed(ctx)
		var early string
		Expect(a.Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec("update items set v = v + 1 where id = ?", id).Error; err != nil {
				return err
			}
			if err := tx.Raw("select pg_current_wal_insert_lsn()").Scan(&early).Error; err != nil {
				return err
			}
			// The replicas replay up to here, and stop before the commit.
			lsn, err := token.ParseLSN(early)
			if err != nil {
				return err
			}
			for _, r := range cluster.Replicas() {
				if err := tx.Exec("select pg_switch_wal()").Error; err != nil {
					return err
				}
				if err := r.WaitCaughtUp(ctx, rywtest.LSN(lsn)); err != nil {
					return err
				}
				if err := r.PauseReplay(ctx); err != nil {
					return err
				}
			}
			return nil
		})).To(Succeed())
		it, tx := read(a.Scopes(scopes.ReadYourWrites(early)), id)
		Expect(it.Replica).To(BeTrue(), rywplugin.Explain(tx).String())
		Expect(it.V).To(BeEquivalentTo(1), "this is why the position is captured after the commit")
	})

	It("captures one position for each write, whichever way it is committed", func(ctx SpecContext) {
		a := newApp(ctx)
		for _, w := range writes {
			before := a.ryw.Status()
			Expect(w.write(ctx, a.DB, seed(ctx))).To(Succeed())
			eventually(w.name+" is captured", func() bool { // Row's behind the caller's Scan
				return a.ryw.Status().Captures == before.Captures+1
			})
			Expect(a.ryw.Status().Marks).To(Equal(before.Marks), w.name)
		}
	})

	It("waits for the rows of a write that the caller reads itself", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		c := session.NewContext(ctx, session.New())
		// More rows than the network's buffers hold: the server cannot commit
		// before they are read.
		rows, err := a.WithContext(c).Raw(`with w as (update items set v = v + 1 where id = ? returning v)
			select v, repeat('x', 1000) from w, generate_series(1, 20000)`, id).Rows()
		Expect(err).NotTo(HaveOccurred())
		it, tx := read(a.WithContext(c), id)
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.InWrite))
		Expect(it.V).To(BeEquivalentTo(1), "not committed yet")
		for _, r := range cluster.Replicas() {
			Expect(r.PauseReplay(ctx)).To(Succeed())
		}
		Expect(rows.Close()).To(Succeed())
		eventually("the write is there, and seen", func() bool {
			it, _ := read(a.WithContext(c), id)
			return it.V == 2
		})
		heal(ctx, cluster)
		Expect(readFrom(a.WithContext(c), id, true).V).To(BeEquivalentTo(2))
	})

	It("waits for the end of a transaction that it cannot observe", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pool, err := a.DB.DB()
		Expect(err).NotTo(HaveOccurred())
		sqlTx, err := pool.BeginTx(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		c := session.NewContext(ctx, session.New())
		tx := a.WithContext(c).Session(&gorm.Session{Initialized: true})
		tx.Statement.ConnPool = sqlTx
		Expect(tx.Session(&gorm.Session{}).Exec("update items set v = v + 1 where id = ?", id).Error).To(Succeed())
		for range 3 {
			it, q := read(a.WithContext(c), id)
			Expect(it.V).To(BeEquivalentTo(1))
			Expect(rywplugin.Explain(q).Reason).To(Equal(policy.InWrite))
		}
		pauseAll(ctx)
		Expect(sqlTx.Commit()).To(Succeed())
		it, _ := read(a.WithContext(c), id)
		Expect(it.V).To(BeEquivalentTo(2))
		heal(ctx, cluster)
		readFrom(a.WithContext(c), id, true)
	})

	It("asks for no position under LazyCapture, and the next read resolves the mark", func(ctx SpecContext) {
		if road == "rywpgx" {
			Skip("rywpgx captures for nothing")
		}
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) {
			c.LazyCapture, c.ProbeInterval = true, time.Hour
		})), seed(ctx)
		pauseAll(ctx)
		before := a.ryw.Status()
		c := session.NewContext(ctx, session.New())
		bump(a.WithContext(c), id)
		Expect(a.ryw.Status().Nodes[0].Queries).To(Equal(before.Nodes[0].Queries))
		it, _ := read(a.WithContext(c), id)
		Expect(it.V).To(BeEquivalentTo(2))
		heal(ctx, cluster)
		readFrom(a.WithContext(c), id, true)
	})

	It("captures nothing for pure reads and rollbacks", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		before := a.ryw.Status()
		read(a.DB, id)
		Expect(a.Transaction(func(tx *gorm.DB) error {
			read(tx, id)
			return nil
		})).To(Succeed())
		tx := a.Begin()
		bump(tx, id)
		Expect(tx.Rollback().Error).To(Succeed())
		Expect(a.ryw.Status().Captures).To(Equal(before.Captures))
		Expect(a.ryw.Status().Marks).To(Equal(before.Marks))
	})

	It("gives a token of its own to a write without a session", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		tok := rywplugin.Token(bump(a.DB, id))
		Expect(tok.IsZero()).To(BeFalse())
		it, _ := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})

	It("fills a sink for what returns no *gorm.DB", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		var tok token.Token
		Expect(a.WithContext(rywplugin.Into(ctx, &tok)).Transaction(func(tx *gorm.DB) error {
			return tx.Exec("update items set v = v + 1 where id = ?", id).Error
		})).To(Succeed())
		it, _ := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
		Expect(it.V).To(BeEquivalentTo(2))
		Expect(it.Replica).To(BeFalse())
	})

	It("has a mark as the token of an open transaction, and the position afterwards", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		tx := a.Begin()
		bump(tx, id)
		open := rywplugin.Token(tx)
		Expect(tx.Commit().Error).To(Succeed())
		done := rywplugin.Token(tx)
		for _, tok := range []token.Token{open, done} {
			it, q := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
			Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(q).String())
		}
		Expect(open.At(0).Wrote).To(BeTrue())
		Expect(done.At(0).Wrote).To(BeFalse())
		Expect(done.At(0).Write.LSN).NotTo(BeZero())
	})

	It("sees a write whose request was cancelled after the commit", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		s := session.New()
		c, cancel := context.WithCancel(session.NewContext(ctx, s))
		tx := a.WithContext(c).Begin()
		bump(tx, id)
		Expect(tx.Commit().Error).To(Succeed())
		cancel()
		it, _ := read(a.WithContext(session.NewContext(ctx, s)), id)
		Expect(it.V).To(BeEquivalentTo(2))
	})

	It("asks a replica with the read itself whether it has caught up, where the driver can", func(ctx SpecContext) {
		if road != "rywpgx" {
			Skip("rywpgx only")
		}
		a, id := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.ProbeInterval = time.Hour })), seed(ctx)
		for n := range 20 {
			tok := rywplugin.Token(bump(a.DB, id))
			Expect(cluster.WaitReplicated(ctx)).To(Succeed())
			before := a.ryw.Status()
			it, tx := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
			Expect(it.V).To(BeEquivalentTo(n + 2))
			Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.Checked), rywplugin.Explain(tx).String())
			Expect(it.Replica).To(BeTrue())
			for i, node := range a.ryw.Status().Nodes {
				Expect(node.Queries).To(Equal(before.Nodes[i].Queries), "no query but the read")
			}
		}
		pauseAll(ctx)
		for n := range 20 {
			tok := rywplugin.Token(bump(a.DB, id))
			it, tx := read(a.Scopes(scopes.ReadYourWrites(tok)), id)
			Expect(it.V).To(BeEquivalentTo(n+22), rywplugin.Explain(tx).String())
			Expect(it.Replica).To(BeFalse())
		}
	})

	It("keeps the session's reads on the primary while its transaction is open", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		c := session.NewContext(ctx, session.New())
		tx := a.WithContext(c).Begin()
		it, q := read(a.WithContext(c), id)
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(q).Reason).To(Equal(policy.InWrite))
		Expect(tx.Rollback().Error).To(Succeed())
		readFrom(a.WithContext(c), id, true)
	})

	It("leaves read-only transactions' sessions alone", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		c := session.NewContext(ctx, session.New())
		tx := a.WithContext(c).Begin(&sql.TxOptions{ReadOnly: true})
		defer tx.Rollback()
		it, _ := read(a.WithContext(c), id)
		Expect(it.Replica).To(BeTrue())
	})

	It("makes a row findable for who was told of its duplicate key", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		other := newID.Add(1)
		Expect(a.Create(&Item{ID: other, V: 7}).Error).To(Succeed())
		c := session.NewContext(ctx, session.New())
		Expect(a.WithContext(c).Create(&Item{ID: other}).Error).To(HaveOccurred())
		it, _ := read(a.WithContext(c), other)
		Expect(it.V).To(BeEquivalentTo(7))
		_ = id
	})
})
