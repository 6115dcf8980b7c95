package suite_test

import (
	"context"
	"database/sql"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

const insertItem = "insert into items (id, v) values (?, 9)"

// duplicates are ways to be told that a row is there already.
var duplicates = map[string]func(db *gorm.DB, id int64) error{
	"`Create`": func(db *gorm.DB, id int64) error { return db.Create(&Item{ID: id}).Error },
	"`Create` without a transaction": func(db *gorm.DB, id int64) error {
		return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&Item{ID: id}).Error
	},
	"`Exec`": func(db *gorm.DB, id int64) error { return db.Exec(insertItem, id).Error },
	"`Raw(\"… returning\").Find`": func(db *gorm.DB, id int64) error {
		return db.Raw(insertItem+" returning *", id).Find(&[]Item{}).Error
	},
	"`Raw(\"… returning\").Scan`": func(db *gorm.DB, id int64) error {
		var v int64
		return db.Raw(insertItem+" returning v", id).Scan(&v).Error
	},
	"`Raw(\"… returning\").Row`": func(db *gorm.DB, id int64) error {
		var v int64
		return db.Raw(insertItem+" returning v", id).Row().Scan(&v)
	},
	"`Raw(\"… returning\").Rows`": func(db *gorm.DB, id int64) error {
		rows, err := db.Raw(insertItem+" returning v", id).Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	},
	"`Transaction`": func(db *gorm.DB, id int64) error {
		return db.Transaction(func(tx *gorm.DB) error { return tx.Exec(insertItem, id).Error })
	},
	"`Begin`, `Rollback`": func(db *gorm.DB, id int64) error {
		tx := db.Begin()
		err := tx.Create(&Item{ID: id}).Error
		return errors.Join(err, tx.Rollback().Error)
	},
}

var _ = Describe("A write that failed", func() {
	for name, insert := range duplicates {
		for mode, option := range modes {
			It("has read the primary: a row whose key was a duplicate is found, "+name+", "+mode, func(ctx SpecContext) {
				a := newApp(ctx, option)
				pauseAll(ctx)
				id := newID.Add(1)
				primarySQL(ctx, "insert into items (id, v) values ($1, 7)", id)
				c, s := withSession(ctx)
				Expect(state("23505", insert(a.WithContext(c), id))).To(Succeed())
				Expect(s.Token().IsZero()).To(BeFalse())
				it, tx := read(a.WithContext(c), id)
				Expect(it.V).To(BeEquivalentTo(7), rywplugin.Explain(tx).String())
				heal(ctx, cluster)
				Expect(readFrom(a.WithContext(c), id, true).V).To(BeEquivalentTo(7))
			})
		}
	}

	for name, commit := range map[string]func(db *gorm.DB) error{
		"an implicit transaction": func(db *gorm.DB) error { return db.Create(&Doomed{ID: newID.Add(1)}).Error },
		"a transaction": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(&Doomed{ID: newID.Add(1)}).Error })
		},
		"one statement": func(db *gorm.DB) error { return db.Exec("insert into doomed values (?)", newID.Add(1)).Error },
		"Raw … returning": func(db *gorm.DB) error {
			return db.Raw("insert into doomed values (?) returning id", newID.Add(1)).Find(&[]Doomed{}).Error
		},
	} {
		It("may have been committed when the connection was lost in the commit: "+name, func(ctx SpecContext) {
			a := newApp(ctx)
			makeRoadTables(ctx)
			c, s := withSession(ctx)
			Expect(state("57P01", commit(a.WithContext(c)))).To(Succeed())
			Expect(s.Token().Len()).To(Equal(1))
			Expect(s.Token().At(0).Wrote).To(BeTrue(), "%v", entries(s.Token()))
		})
	}

	It("is broken on dbresolver alone: the row is there and is not found", func(ctx SpecContext) {
		db := newPlain()
		pauseAll(ctx)
		id := newID.Add(1)
		primarySQL(ctx, "insert into items (id, v) values ($1, 7)", id)
		Expect(state("23505", db.Create(&Item{ID: id}).Error)).To(Succeed())
		it, _ := read(db, id)
		Expect(it.ID).To(BeZero())
	})
})

var _ = Describe("A transaction", func() {
	It("that ends with its context holds the session on the primary no longer", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		s := session.New()
		c, cancel := context.WithCancel(session.NewContext(ctx, s))
		tx := a.WithContext(c).Begin()
		bump(tx, id)
		cancel() // database/sql rolls back
		eventually("a replica answers", func() bool {
			it, _ := read(a.WithContext(session.NewContext(ctx, s)), id)
			Expect(it.V).To(BeEquivalentTo(1))
			return it.Replica
		})
	})

	It("is observed by the sessions of all statements in it", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		began, s := withSession(ctx)
		within, t := withSession(ctx)
		tx := a.WithContext(began).Begin()
		Expect(tx.WithContext(within).Exec(plusOneSQL, id).Error).To(Succeed())
		Expect(tx.Commit().Error).To(Succeed())
		for _, ses := range []*session.Session{s, t} {
			Expect(hasPosition(ses.Token())).To(BeTrue(), "%v", entries(ses.Token()))
			it, _ := read(a.WithContext(session.NewContext(ctx, ses)), id)
			Expect(it.V).To(BeEquivalentTo(2))
		}
	})

	It("that GORM begins for one statement is the plain *sql.Tx to its hooks", func(ctx SpecContext) {
		for _, a := range []*app{newApp(ctx), beside{replicas: 2, pluginFirst: true, trust: true}.open()} {
			p := Plain{ID: newID.Add(1)}
			Expect(a.Create(&p).Error).To(Succeed())
			Expect(p.pool).To(BeAssignableToTypeOf(&sql.Tx{}))
		}
	})

	for _, end := range []func(*gorm.DB) *gorm.DB{(*gorm.DB).Commit, (*gorm.DB).Rollback} {
		It("that only read has read the primary", func(ctx SpecContext) {
			a, id := newApp(ctx), seed(ctx)
			pauseAll(ctx)
			primarySQL(ctx, "update items set v = 2 where id = $1", id)
			c, _ := withSession(ctx)
			tx := a.WithContext(c).Begin()
			it, _ := read(tx, id)
			Expect(it.V).To(BeEquivalentTo(2))
			Expect(end(tx).Error).To(Succeed())
			it, q := read(a.WithContext(c), id)
			Expect(it.V).To(BeEquivalentTo(2), rywplugin.Explain(q).String())
		})
	}
})

var _ = Describe("A read of the primary", func() {
	It("brings its floor along, not a mark that the next read would have to resolve", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		for _, do := range []func(db *gorm.DB) error{
			func(db *gorm.DB) error { return db.First(&Item{}, id).Error },
			func(db *gorm.DB) error { return db.Model(&Item{}).Where("id = ?", id).Pluck("v", &[]int64{}).Error },
			func(db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.First(&Item{}, id).Error })
			},
		} {
			c, s := withSession(ctx)
			Expect(do(a.WithContext(c).Clauses(strongClause).Session(&gorm.Session{}))).To(Succeed())
			Expect(s.Token().Len()).To(Equal(1))
			e := s.Token().At(0)
			Expect(e.Floor.LSN).NotTo(BeZero())
			Expect(e.SeenPrimary || e.Wrote).To(BeFalse())
		}
	})
})

var _ = Describe("A token over its maximal age", func() {
	It("is replaced by what the primary has, whatever it asked for", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		old := rywplugin.Token(bump(a.DB, id)).At(0)
		old.Minted = time.Now().Add(-25 * time.Hour)
		old.Write.LSN += 1 << 40 // where no server will be
		s := session.New(token.FromEntries(old))
		heal(ctx, cluster)
		c := session.NewContext(ctx, s)
		it, tx := read(a.WithContext(c), id)
		Expect(it.Replica).To(BeFalse())
		Expect(rywplugin.Explain(tx).Reason).To(Equal(policy.TokenAged))
		readFrom(a.WithContext(c), id, true)
	})
})

var _ = Describe("rywpgx", func() {
	It("captures what GORM reads and writes on the primary without a query of the watcher's", func(ctx SpecContext) {
		if road != "rywpgx" {
			Skip("rywpgx only")
		}
		a := newApp(ctx, pluginConfig(func(c *rywplugin.Config) { c.ProbeInterval = time.Hour }))
		id := plant(ctx, 1)[0]
		for name, do := range map[string]func(db *gorm.DB) error{
			"a read": func(db *gorm.DB) error { return db.Clauses(strongClause).First(&Item{}, id).Error },
			"Rows": func(db *gorm.DB) error {
				return db.Clauses(strongClause).Model(&Item{}).Select("v").Row().Scan(new(int64))
			},
			"Raw … returning": func(db *gorm.DB) error {
				return db.Raw(plusOneSQL+" returning *", id).Find(&[]Item{}).Error
			},
			"Update": func(db *gorm.DB) error { return db.Model(&Item{}).Where("id = ?", id).Update("v", 5).Error },
			"Transaction": func(db *gorm.DB) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, id).Error })
			},
		} {
			c, s := withSession(ctx)
			before := a.ryw.Status().Nodes[0].Queries
			Expect(do(a.WithContext(c))).To(Succeed())
			Expect(s.Token().IsZero()).To(BeFalse(), name)
			Expect(a.ryw.Status().Nodes[0].Queries).To(Equal(before), name)
		}
	})
})

// Plain remembers what its hook finds as the statement's pool.
type Plain struct {
	ID   int64
	pool gorm.ConnPool
}

// TableName implements schema.Tabler.
func (Plain) TableName() string { return "items" }

// AfterCreate implements GORM's hook.
func (p *Plain) AfterCreate(tx *gorm.DB) error {
	p.pool = tx.Statement.ConnPool
	return nil
}
