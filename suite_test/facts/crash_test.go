package facts_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

// life is what tells one life of a server from another, readable by any role.
type life struct{ started, walReset, archiverReset string }

func lifeOf(ctx context.Context, s *rywtest.Server) (l life) {
	GinkgoHelper()
	c := dialAs(ctx, s, nobody)
	Expect(c.QueryRow(ctx, `select pg_postmaster_start_time()::text,
		(select stats_reset::text from pg_stat_wal), (select stats_reset::text from pg_stat_archiver)`).
		Scan(&l.started, &l.walReset, &l.archiverReset)).To(Succeed())
	return l
}

// expectOnlyReset shows that a server has another life of the same first process.
func expectOnlyReset(ctx context.Context, s *rywtest.Server, lived life) {
	GinkgoHelper()
	now := lifeOf(ctx, s)
	Expect(now.started).To(Equal(lived.started))
	Expect(now.walReset).NotTo(Equal(lived.walReset))
	Expect(now.archiverReset).NotTo(Equal(lived.archiverReset))
}

// A way for a server to end and begin again.
type ending func(ctx context.Context, s *rywtest.Server)

func kill(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.Kill(ctx)).To(Succeed())
	Expect(s.Start(ctx)).To(Succeed())
}

func stopImmediately(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.StopImmediate(ctx)).To(Succeed())
	Expect(s.Start(ctx)).To(Succeed())
}

func killBackend(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.KillBackend(ctx)).To(Succeed())
}

func restart(ctx context.Context, s *rywtest.Server) {
	GinkgoHelper()
	Expect(s.Restart(ctx)).To(Succeed())
}

var _ = Describe("A standby that ends and begins again", Ordered, func() {
	var (
		own  *rywtest.Cluster
		s    *rywtest.Server
		p    *pgx.Conn
		held *pgx.Conn // a connection from before

		id     int64       // a row that the standby has shown
		before rywtest.LSN // what it had replayed then
		lived  life
	)
	BeforeAll(func(ctx SpecContext) {
		// Nothing but a restartpoint makes the standby record how far it is, so
		// that the specs know. By itself the background writer would, too.
		own = startCluster(ctx, rywtest.Options{
			Replicas:        1,
			ReplicaSettings: map[string]string{"bgwriter_lru_maxpages": "0"},
		})
		s, p = own.Replica(0), dial(ctx, own.Primary())
	})

	BeforeEach(func(ctx SpecContext) {
		exec(ctx, p, "checkpoint")
		replicated(ctx, own)
		held = dial(ctx, s)
		exec(ctx, held, "checkpoint")
		id, _ = write(ctx, p)
		replicated(ctx, own)
		Expect(visible(ctx, held, id)).To(BeTrue())
		before, lived = replayLSN(ctx, held), lifeOf(ctx, s)
	})

	// Replaying local WAL again takes as long as there is much of it. Here it is one
	// commit, and the standby is not allowed to replay it.
	DescribeTable("shows an older state if it has crashed", func(ctx SpecContext, crash ending) {
		release := holdCommits(ctx, s)
		crash(ctx, s)

		c := dial(ctx, s)
		Expect(replayLSN(ctx, c)).To(BeNumerically("<", before))
		Expect(visible(ctx, c, id)).To(BeFalse())
		Expect(held.Ping(ctx)).NotTo(Succeed(), "a connection from before the crash")
		Expect(lifeOf(ctx, s)).NotTo(Equal(lived))

		release(ctx)
		awaitReplay(ctx, c, before)
		Expect(visible(ctx, c, id)).To(BeTrue())
	},
		Entry("by SIGKILL", ending(kill)),
		Entry("by an immediate stop", ending(stopImmediately)),
		Entry("by SIGKILL of one backend", ending(killBackend)),
	)

	It("shows no older state after a clean stop", func(ctx SpecContext) {
		holdCommits(ctx, s)
		restart(ctx, s)
		c := dial(ctx, s)
		Expect(replayLSN(ctx, c)).To(BeNumerically(">=", before))
		Expect(visible(ctx, c, id)).To(BeTrue())
		Expect(held.Ping(ctx)).NotTo(Succeed())
		Expect(lifeOf(ctx, s).started).NotTo(Equal(lived.started))
	})

	It("has the start time of before and new statistics if one backend was killed", func(ctx SpecContext) {
		sampled, _ := sampleOf(ctx, s, nobody)
		killBackend(ctx, s)
		expectOnlyReset(ctx, s, lived)
		again, _ := sampleOf(ctx, s, nobody)
		Expect(again.Incarnation).NotTo(Equal(sampled.Incarnation), "to the library")
	})

	It("does not know when it last replayed a commit until it has replayed one", func(ctx SpecContext) {
		exec(ctx, p, "checkpoint")
		replicated(ctx, own)
		restart(ctx, s)
		const query = "select pg_last_xact_replay_timestamp() is null"
		Expect(get[bool](ctx, dial(ctx, s), query)).To(BeTrue())
		write(ctx, p)
		replicated(ctx, own)
		Expect(get[bool](ctx, dial(ctx, s), query)).To(BeFalse())
	})

	It("is the same life for as long as a connection lives, and goes only forward", func(ctx SpecContext) {
		Expect(lifeOf(ctx, s)).To(Equal(lived))
		last := before
		for range 100 {
			write(ctx, p)
			now := replayLSN(ctx, held)
			Expect(now).To(BeNumerically(">=", last))
			last = now
		}
		Eventually(replayLSN).WithArguments(ctx, held).Should(BeNumerically(">", before))
		Expect(lifeOf(ctx, s)).To(Equal(lived))
	})
})

var _ = Describe("A primary that crashes", Ordered, func() {
	var s *rywtest.Server
	BeforeAll(func(ctx SpecContext) {
		s = startCluster(ctx, rywtest.Options{Replicas: rywtest.NoReplicas}).Primary()
	})

	It("had no replay position before", func(ctx SpecContext) {
		c := dial(ctx, s)
		Expect(inRecovery(ctx, c)).To(BeFalse())
		Expect(get[bool](ctx, c, "select pg_last_wal_replay_lsn() is null")).To(BeTrue())
	})

	It("ends every connection and has the start time of before and new statistics if it was one backend", func(ctx SpecContext) {
		held, lived := dial(ctx, s), lifeOf(ctx, s)
		killBackend(ctx, s)
		Expect(held.Ping(ctx)).NotTo(Succeed())
		expectOnlyReset(ctx, s, lived)
	})

	It("has a replay position from then on, which stands still", func(ctx SpecContext) {
		kill(ctx, s)
		c := dial(ctx, s)
		Expect(inRecovery(ctx, c)).To(BeFalse())
		frozen := replayLSN(ctx, c)
		_, pos := write(ctx, c)
		Expect(pos).To(BeNumerically(">", frozen))
		Expect(replayLSN(ctx, c)).To(Equal(frozen))
	})
})
