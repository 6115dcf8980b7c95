package suite_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

var _ = Describe("A session", func() {
	for mode, option := range modes {
		It("may be used by many goroutines, each of which sees its own writes, "+mode, func(ctx SpecContext) {
			const goroutines, rounds = 12, 15
			a := newApp(ctx, option)
			ids := make([]int64, goroutines)
			for i := range ids {
				ids[i] = seed(ctx)
			}
			stop := pausing(ctx, GinkgoRandomSeed())
			defer stop()
			c, _ := withSession(ctx)
			errs := make(chan error, goroutines)
			var wg sync.WaitGroup
			for i, id := range ids {
				wg.Go(func() { errs <- writeAndRead(a.WithContext(c), id, i, rounds) })
			}
			wg.Wait()
			for range ids {
				Expect(<-errs).To(Succeed())
			}
		})
	}

	It("is left behind by a worker that takes a new one for each job", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		// job is one of many that one goroutine works on, with one handle.
		job := func(tok string, do func(db *gorm.DB)) string {
			t, err := token.Parse(tok)
			if tok != "" {
				Expect(err).NotTo(HaveOccurred())
			}
			s := session.New(t)
			do(a.WithContext(session.NewContext(ctx, s)))
			return s.Token().String()
		}
		var after string
		for n := range int64(3) {
			after = job("", func(db *gorm.DB) {
				bump(db, id)
				it, _ := read(db, id)
				Expect(it.V).To(Equal(2 + n))
			})
			job("", func(db *gorm.DB) { // of somebody else
				it, tx := read(db, id)
				Expect(it.Replica).To(BeTrue(), rywplugin.Explain(tx).String())
			})
			job(after, func(db *gorm.DB) { // the first one's next
				it, _ := read(db, id)
				Expect(it.V).To(Equal(2 + n))
			})
		}
	})

	It("does not pin the others of a pool: a session's primary is its own", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		pauseAll(ctx)
		wrote, _ := withSession(ctx)
		bump(a.WithContext(wrote), id)
		for range 20 {
			it, _ := read(a.WithContext(wrote), id)
			Expect(it.Replica).To(BeFalse())
			other, _ := withSession(ctx)
			it, tx := read(a.WithContext(other), id)
			Expect(it.Replica).To(BeTrue(), rywplugin.Explain(tx).String())
		}
	})

	It("is the same for goroutines of different handles, contexts and transactions", func(ctx SpecContext) {
		a, b, id := newApp(ctx), newApp(ctx), seed(ctx)
		s := session.New()
		stop := pausing(ctx, GinkgoRandomSeed())
		defer stop()
		for n := range int64(20) {
			c, cancel := context.WithCancel(session.NewContext(ctx, s))
			Expect(a.WithContext(c).Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, id).Error })).To(Succeed())
			cancel()
			it, tx := read(b.WithContext(session.NewContext(ctx, s)), id)
			Expect(it.V).To(Equal(2+n), rywplugin.Explain(tx).String())
		}
	})
})

// writeAndRead raises an item's version in one way after the other and reads it
// back after each.
func writeAndRead(db *gorm.DB, id int64, offset, rounds int) error {
	for n := range rounds {
		w := writes[(offset+n)%len(writes)]
		if w.name == "Save" { // sets a version
			w = writes[0]
		}
		if err := w.write(db.Statement.Context, db, id); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		var it Item
		tx := db.Select("items.*, "+who).Limit(1).Find(&it, id)
		if tx.Error != nil {
			return tx.Error
		}
		if want := int64(n) + 2; it.V != want {
			return fmt.Errorf("%s: have version %d, want %d: %s", w.name, it.V, want, rywplugin.Explain(tx))
		}
	}
	return nil
}
