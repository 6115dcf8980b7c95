package suite_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// stuckCommit raises an item's version in a commit that waits for a synchronous
// standby which does not exist: the replicas show it, the primary does not. It
// returns what lets the commit end.
func stuckCommit(ctx context.Context, id int64) (release func(context.Context)) {
	GinkgoHelper()
	alter := func(ctx context.Context, value string) {
		conn, err := cluster.Primary().Conn(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "alter system set synchronous_standby_names = "+value)
		Expect(err).NotTo(HaveOccurred())
		_, err = conn.Exec(ctx, "select pg_reload_conf()")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			var have string
			g.Expect(conn.QueryRow(ctx, "select quote_literal(current_setting('synchronous_standby_names'))").Scan(&have)).To(Succeed())
			g.Expect(have).To(Equal(value))
		}).Should(Succeed())
	}
	alter(ctx, "'missing'")
	writer, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() {
		_, err := writer.Exec(context.WithoutCancel(ctx), "update items set v = v + 1 where id = $1", id)
		done <- err
	}()
	released := false
	release = func(ctx context.Context) {
		if released {
			return
		}
		released = true
		alter(ctx, "''")
		Eventually(done).WithTimeout(patience).Should(Receive(BeNil()))
		_ = writer.Close(context.Background())
	}
	DeferCleanup(release)
	return release
}

func mode(m rywplugin.Config) appOption {
	return pluginConfig(func(c *rywplugin.Config) { c.Monotonic = m.Monotonic })
}

var _ = Describe("A commit that replicas show before the primary", Serial, func() {
	// seenOnReplica is a session that has read the new version there.
	seenOnReplica := func(ctx context.Context, a *app, id int64) (*session.Session, context.Context) {
		s := session.New()
		c := session.NewContext(ctx, s)
		Eventually(func() int64 {
			it, _ := read(a.WithContext(c).Scopes(scopes.StaleOK()), id)
			return it.V
		}).WithTimeout(patience).Should(BeEquivalentTo(2))
		return s, c
	}

	It("is the blind spot of mode On", func(ctx SpecContext) {
		a, id := newApp(ctx), seed(ctx)
		release := stuckCommit(ctx, id)
		_, c := seenOnReplica(ctx, a, id)
		it, _ := read(a.WithContext(c).Scopes(scopes.Strong()), id)
		Expect(it.V).To(BeEquivalentTo(1), "older than what the session has seen")
		release(ctx)
	})

	for name, gone := range map[string]bool{"": false, ", with no replica left to ask": true} {
		It("is never unseen in mode Strict"+name, func(ctx SpecContext) {
			a, id := newApp(ctx, mode(rywplugin.Config{Monotonic: rywplugin.MonotonicStrict})), seed(ctx)
			release := stuckCommit(ctx, id)
			s, c := seenOnReplica(ctx, a, id)
			if gone {
				for _, r := range cluster.Replicas() {
					Expect(r.Kill(ctx)).To(Succeed())
					DeferCleanup(func(ctx context.Context) { Expect(r.Start(ctx)).To(Succeed()) })
				}
			}
			for _, text := range []bool{false, true} {
				in := c
				if text { // the same session in another process
					in = session.NewContext(ctx, session.New(s.Token()))
				}
				began := time.Now()
				var it Item
				err := a.WithContext(in).Scopes(scopes.Strong()).Take(&it, id).Error
				Expect(err).To(MatchError(rywplugin.ErrNotMonotonic))
				Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
				err = a.WithContext(in).Transaction(func(*gorm.DB) error { return nil })
				Expect(err).To(MatchError(rywplugin.ErrNotMonotonic), "the reads of a transaction are reads")
			}
			fresh := session.NewContext(ctx, session.New())
			it, _ := read(a.WithContext(fresh).Scopes(scopes.Strong()), id)
			Expect(it.V).To(BeEquivalentTo(1), "a session that has seen nothing need not wait")

			got := make(chan int64, 1)
			go func() {
				defer GinkgoRecover()
				it, _ := read(a.WithContext(c).Scopes(scopes.Strong()), id)
				got <- it.V
			}()
			release(ctx)
			Eventually(got).WithTimeout(patience).Should(Receive(BeEquivalentTo(2)))
		})
	}

	It("costs nothing for a session that has seen only the primary", func(ctx SpecContext) {
		a, id := newApp(ctx, mode(rywplugin.Config{Monotonic: rywplugin.MonotonicStrict})), seed(ctx)
		c := session.NewContext(ctx, session.New())
		stuckCommit(ctx, id)
		for range 3 {
			it, _ := read(a.WithContext(c).Scopes(scopes.Strong()), id)
			Expect(it.V).To(BeEquivalentTo(1))
		}
	})
})
