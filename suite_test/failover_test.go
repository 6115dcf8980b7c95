package suite_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// whoeverIsPrimary is the DSN of an application that finds the primary among all
// servers, as drivers do.
func whoeverIsPrimary(c *rywtest.Cluster) gorm.Dialector {
	var hosts, ports []string
	for _, s := range append([]*rywtest.Server{c.Primary()}, c.Replicas()...) {
		hosts, ports = append(hosts, s.Host()), append(ports, fmt.Sprint(s.Port()))
	}
	dsn := fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable connect_timeout=2 target_session_attrs=read-write",
		strings.Join(hosts, ","), strings.Join(ports, ","))
	if road == "rywpgx" {
		return rywpgx.Open(dsn)
	}
	return postgres.Open(dsn)
}

// checkpoint makes a server write down which timeline it is on, which is what it is
// believed by.
func checkpoint(ctx context.Context, servers ...*rywtest.Server) {
	GinkgoHelper()
	for _, s := range servers {
		conn, err := s.Conn(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "checkpoint")
		Expect(err).NotTo(HaveOccurred())
		Expect(conn.Close(ctx)).To(Succeed())
	}
}

var _ = Describe("A failover", Serial, func() {
	var (
		c  *rywtest.Cluster
		a  *app
		id int64
	)
	BeforeEach(func(ctx SpecContext) {
		c = startCluster(ctx, rywtest.Options{Replicas: 2})
		createTables(ctx, c)
		primary := whoeverIsPrimary(c)
		a = newAppOn(ctx, c, openedBy(primary))
		id = newID.Add(1)
		Expect(a.Create(&Item{ID: id, V: 1}).Error).To(Succeed())
		Expect(c.WaitReplicated(ctx)).To(Succeed())
	})

	// failOver has the first replica promoted and the other follow it.
	failOver := func(ctx context.Context) {
		GinkgoHelper()
		promoted, other := c.Replica(0), c.Replica(1)
		Expect(promoted.Promote(ctx)).To(Succeed())
		Expect(other.Follow(ctx, promoted)).To(Succeed())
		checkpoint(ctx, promoted)
		Expect(c.WaitReplicated(ctx)).To(Succeed())
		checkpoint(ctx, other)
	}

	It("that loses nothing costs a session nothing: it goes on, on replicas too", func(ctx SpecContext) {
		s := session.New()
		cs := session.NewContext(ctx, s)
		bump(a.WithContext(cs), id)
		Expect(c.WaitReplicated(ctx)).To(Succeed())
		before := s.Token()
		Expect(c.Primary().Stop(ctx)).To(Succeed())
		failOver(ctx)
		for _, text := range []bool{false, true} { // going on, and in another process
			in := cs
			if text {
				in = session.NewContext(ctx, session.New(before))
			}
			Eventually(func(g Gomega) {
				var it Item
				tx := a.WithContext(in).Select("items.*, "+who).Limit(1).Find(&it, id)
				g.Expect(tx.Error).NotTo(HaveOccurred())
				e := rywplugin.Explain(tx)
				Expect(it.V).To(BeEquivalentTo(2), e.String())
				Expect(e.PossiblyLost).To(BeFalse(), e.String())
				g.Expect(it.Replica).To(BeTrue(), e.String())
			}).WithTimeout(patience).Should(Succeed())
		}
		bump(a.WithContext(cs), id)
		it, tx := read(a.WithContext(cs), id)
		Expect(it.V).To(BeEquivalentTo(3), rywplugin.Explain(tx).String())
		Expect(readFrom(a.WithContext(cs), id, true).V).To(BeEquivalentTo(3))
	})

	It("that loses a write says so, each time, and serves the read", func(ctx SpecContext) {
		for _, r := range c.Replicas() {
			Expect(r.Stop(ctx)).To(Succeed())
		}
		s := session.New()
		cs := session.NewContext(ctx, s)
		bump(a.WithContext(cs), id)
		reader := session.New(s.Token()) // somebody who was shown the write
		Expect(c.Primary().Kill(ctx)).To(Succeed())
		for _, r := range c.Replicas() {
			Expect(r.Start(ctx)).To(Succeed())
		}
		failOver(ctx)
		for _, in := range []context.Context{cs, session.NewContext(ctx, reader), session.NewContext(ctx, session.New(s.Token()))} {
			for range 3 {
				for _, strong := range []bool{false, true} {
					db := a.WithContext(in)
					if strong {
						db = db.Scopes(scopes.Strong())
					}
					var it Item
					var tx *gorm.DB
					Eventually(func() error {
						tx = db.Session(&gorm.Session{}).Limit(1).Find(&it, id)
						return tx.Error
					}).WithTimeout(patience).Should(Succeed())
					Expect(it.V).To(BeEquivalentTo(1))
					Expect(rywplugin.Explain(tx).Err()).To(MatchError(rywplugin.ErrLostWrite), rywplugin.Explain(tx).String())
				}
			}
		}
		fresh, tx := read(a.WithContext(session.NewContext(ctx, session.New())), id)
		Expect(fresh.V).To(BeEquivalentTo(1))
		Expect(rywplugin.Explain(tx).PossiblyLost).To(BeFalse(), "a session that has nothing to lose")
	})

	It("that left the old primary alive is noticed by whoever has seen the new one", func(ctx SpecContext) {
		old := newAppOn(ctx, c) // whose DSN is the old primary's
		promoted := c.Replica(0)
		Expect(promoted.Promote(ctx)).To(Succeed())
		now := openGORM(promoted, &gorm.Config{})
		ryw := rywplugin.New(rywplugin.Config{Replicas: dialectors(c)[1:]})
		Expect(now.Use(ryw)).To(Succeed())
		DeferCleanup(ryw.Close)
		tok := rywplugin.Token(bump(now, id))
		Expect(tok.At(0).Write.Timeline).To(BeEquivalentTo(2))
		for name, db := range map[string]*gorm.DB{
			"token":  old.Scopes(scopes.ReadYourWrites(tok)),
			"strong": old.WithContext(session.NewContext(ctx, session.New(tok))).Scopes(scopes.Strong()),
		} {
			var it Item
			Expect(db.Take(&it, id).Error).To(MatchError(rywplugin.ErrStalePrimary), name)
		}
		it, _ := read(old.DB, id)
		Expect(it.V).To(BeEquivalentTo(1), "who has seen nothing is not protected")
	})
})

var _ = Describe("A read whose primary is lost under way", Serial, func() {
	It("is not sent to a replica that is behind, whatever could be proved when it was decided", func(ctx SpecContext) {
		c := startCluster(ctx, rywtest.Options{Replicas: 1})
		createTables(ctx, c)
		a, r := newAppOn(ctx, c), c.Replica(0)
		id := newID.Add(1)
		Expect(a.Create(&Item{ID: id, V: 1}).Error).To(Succeed())
		Expect(c.WaitReplicated(ctx)).To(Succeed())
		Expect(r.SetApplyDelay(ctx, time.Minute)).To(Succeed())
		s := session.New()
		cs := session.NewContext(ctx, s)
		bump(a.WithContext(cs), id)
		Expect(r.Stop(ctx)).To(Succeed()) // and not killed: it comes back where it was
		eventually("the replica is known to be gone", func() bool { return !a.ryw.Status().Nodes[1].Healthy })

		type answer struct {
			it Item
			tx *gorm.DB
		}
		read := make(chan answer, 1)
		const text = "select items.*, " + who + " from items, pg_sleep(2) where id = ?"
		go func() {
			var it Item
			tx := a.WithContext(cs).Raw(text, id).Find(&it)
			read <- answer{it, tx}
		}()
		admin, err := c.Primary().Conn(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer admin.Close(ctx)
		const sleeping = "from pg_stat_activity where wait_event = 'PgSleep'"
		eventually("the primary is reading", func() bool {
			var n int
			Expect(admin.QueryRow(ctx, "select count(*) "+sleeping).Scan(&n)).To(Succeed())
			return n == 1
		})
		Expect(r.Start(ctx)).To(Succeed())
		eventually("the replica is proven", func() bool { return a.ryw.Status().Nodes[1].Proven })
		_, err = admin.Exec(ctx, "select pg_terminate_backend(pid) "+sleeping)
		Expect(err).NotTo(HaveOccurred())

		var got answer
		Eventually(read).WithTimeout(patience).Should(Receive(&got))
		Expect(got.tx.Error).NotTo(HaveOccurred())
		Expect(got.it.V).To(BeEquivalentTo(2), rywplugin.Explain(got.tx).String())
	})
})

// openedBy has the application open its primary with a dialector of its own.
func openedBy(d gorm.Dialector) appOption {
	return func(c *gorm.Config, _ *rywplugin.Config) { c.Dialector = d }
}
