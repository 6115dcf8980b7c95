package facts_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// walTimeline is the timeline that a primary writes, right at once and for any
// role.
const walTimeline = "('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int"

// recordedTimeline is the one of the newest checkpoint in the control file.
const recordedTimeline = "(select timeline_id from pg_control_checkpoint())"

func recorded(ctx context.Context, c *pgx.Conn) int {
	GinkgoHelper()
	return get[int](ctx, c, "select "+recordedTimeline)
}

func inRecovery(ctx context.Context, c *pgx.Conn) bool {
	GinkgoHelper()
	return get[bool](ctx, c, "select pg_is_in_recovery()")
}

var _ = Describe("The primary's position functions", func() {
	It("fail on a standby", func(ctx SpecContext) {
		p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		Expect(inRecovery(ctx, p)).To(BeFalse())
		Expect(inRecovery(ctx, r)).To(BeTrue())
		for _, sql := range []string{insertSQL, writtenSQL, flushSQL, walTimeline} {
			exec(ctx, p, "select "+sql)
			_, err := r.Exec(ctx, "select "+sql)
			Expect(code(err)).To(Equal("55000"), sql)
		}
	})
})

var _ = Describe("A promotion", Ordered, func() {
	var (
		own      *rywtest.Cluster
		s        *rywtest.Server // the standby that is promoted
		held     *pgx.Conn       // to it, from before
		probe    *watcher.Probe  // on another one
		reader   *pgx.Conn       // the same without privileges
		id       int64
		replayed rywtest.LSN // what it had replayed when it was promoted
	)
	BeforeAll(func(ctx SpecContext) {
		own = startCluster(ctx, rywtest.Options{Replicas: 3})
		s = own.Replica(0)
		held, reader = dial(ctx, s), dialAs(ctx, s, nobody)
		probe = watcher.NewProbe(dialAs(ctx, s, nobody))
		p := dial(ctx, own.Primary())
		// So that the checkpoint that follows the promotion takes its time.
		exec(ctx, p, "insert into facts select n from generate_series(1000000, 1050000) n")
		id, _ = write(ctx, p)
		replicated(ctx, own)
		Expect(recorded(ctx, held)).To(Equal(1))
		Expect(held.Ping(ctx)).To(Succeed())
		Expect(held.PgConn().ParameterStatus("in_hot_standby")).To(Equal("on"))
		sample, err := probe.Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Standby).To(BeTrue())
		Expect(own.Replica(1).Stop(ctx)).To(Succeed())
		Expect(own.Primary().Stop(ctx)).To(Succeed())
	})

	It("shows at once on connections from before: role, timeline, protocol parameter and that it writes", func(ctx SpecContext) {
		promoted := async(func() error { return s.Promote(ctx) })
		var first *int
		Eventually(func() *int {
			first = get[*int](ctx, reader, "select case when not pg_is_in_recovery() then "+walTimeline+" end")
			return first
		}).ShouldNot(BeNil())
		Expect(*first).To(Equal(2))
		Expect(reader.PgConn().ParameterStatus("in_hot_standby")).To(Equal("off"))
		Expect(await(promoted)).To(Succeed())

		Expect(visible(ctx, held, id)).To(BeTrue())
		Expect(held.PgConn().ParameterStatus("in_hot_standby")).To(Equal("off"))
		replayed = replayLSN(ctx, held)
		insert(ctx, held, newID())
	})

	It("shows in the library's position query", func(ctx SpecContext) {
		before := probe.Last()
		sample, err := probe.Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Standby).To(BeFalse())
		Expect(sample.Position.Timeline).To(BeEquivalentTo(2))
		Expect(sample.Position.LSN).To(BeNumerically(">", before.Position.LSN))
	})

	It("is in the control file only with the next checkpoint", func(ctx SpecContext) {
		Expect(recorded(ctx, reader)).To(Equal(1))
		exec(ctx, held, "checkpoint")
		Expect(recorded(ctx, reader)).To(Equal(2))
	})

	It("leaves the replay position where it was", func(ctx SpecContext) {
		_, pos := write(ctx, held)
		Expect(inRecovery(ctx, held)).To(BeFalse())
		Expect(pos).To(BeNumerically(">", replayed))
		Expect(replayLSN(ctx, held)).To(Equal(replayed))
	})

	It("is in what a standby receives, for roles that may see it, once it follows", func(ctx SpecContext) {
		Expect(own.Replica(1).Follow(ctx, s)).To(Succeed())
		const received = "select received_tli from pg_stat_wal_receiver"
		Expect(get[*int](ctx, dial(ctx, own.Replica(1)), received)).To(HaveValue(Equal(2)))
		Expect(get[*int](ctx, dialAs(ctx, own.Replica(1), nobody), received)).To(BeNil())
	})

	It("is in the control file of a standby that goes over to it late, never early", func(ctx SpecContext) {
		r := own.Replica(2)
		c := dial(ctx, r)
		Expect(recorded(ctx, c)).To(Equal(1))
		redirect(ctx, r, own.Replica(1))
		id, pos := write(ctx, held)
		awaitReplay(ctx, c, pos)
		Expect(visible(ctx, c, id)).To(BeTrue())
		Expect(recorded(ctx, c)).To(Equal(1), "replays the new timeline, has no restartpoint on it yet")

		By("and in the library's position query at once, for roles that may see what it receives")
		sample, err := watcher.NewProbe(c).Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Position.Timeline).To(BeEquivalentTo(2))
		Expect(sample.Streaming).To(BeTrue())

		By("for others as soon as replay has to write a page, as when a file is removed")
		other := watcher.NewProbe(dialAs(ctx, r, nobody))
		sample, err = other.Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Streaming).To(BeFalse())
		exec(ctx, held, "create table removed (n int)")
		exec(ctx, held, "drop table removed")
		Expect(r.WaitCaughtUp(ctx, roundDown(insertLSN(ctx, held)))).To(Succeed())
		sample, err = other.Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Position.Timeline).To(BeEquivalentTo(2))
		Expect(recorded(ctx, c)).To(Equal(1), "still")

		exec(ctx, held, "checkpoint")
		Expect(r.WaitCaughtUp(ctx, roundDown(insertLSN(ctx, held)))).To(Succeed())
		exec(ctx, c, "checkpoint")
		Expect(recorded(ctx, dialAs(ctx, r, nobody))).To(Equal(2))
	})
})

// redirect has a running standby receive from where another one does.
func redirect(ctx context.Context, s, other *rywtest.Server) {
	GinkgoHelper()
	conninfo := setting(ctx, other, "primary_conninfo")
	Expect(conninfo).To(ContainSubstring(other.Name()))
	conninfo = strings.ReplaceAll(conninfo, other.Name(), s.Name())
	change(ctx, s, "alter system set primary_conninfo = '"+conninfo+"'", "primary_conninfo", conninfo)
}

var _ = Describe("A failover that loses a write", Ordered, func() {
	var (
		own           *rywtest.Cluster
		old, promoted *rywtest.Server
		p             *pgx.Conn // to the new primary
		lost          int64
		pos           rywtest.LSN // of the lost write
		system        int64
	)
	const bulk = "select pg_logical_emit_message(false, 'f', repeat('x', 100000));"
	const systemID = "select system_identifier from pg_control_system()"

	BeforeAll(func(ctx SpecContext) {
		own = startCluster(ctx, rywtest.Options{Replicas: 3})
		old, promoted = own.Primary(), own.Replica(0)
		Expect(promoted.Stop(ctx)).To(Succeed())
		Expect(own.Replica(1).Stop(ctx)).To(Succeed())
		c := dial(ctx, old)
		system = get[int64](ctx, c, systemID)
		exec(ctx, c, bulk)
		lost, pos = write(ctx, c)
		Expect(own.Replica(2).WaitCaughtUp(ctx, pos)).To(Succeed())
		Expect(old.Kill(ctx)).To(Succeed())

		Expect(promoted.Start(ctx)).To(Succeed())
		Expect(promoted.Promote(ctx)).To(Succeed())
		Expect(own.Replica(1).Follow(ctx, promoted)).To(Succeed())
		p = dial(ctx, promoted)
	})

	It("leaves a standby that has it: ahead of the new primary at first, then not to be told by positions", func(ctx SpecContext) {
		diverged := dial(ctx, own.Replica(2))
		ahead := replayLSN(ctx, diverged)
		Expect(insertLSN(ctx, p)).To(BeNumerically("<", ahead))

		exec(ctx, p, bulk+bulk)
		id, _ := write(ctx, p)
		redirect(ctx, own.Replica(2), own.Replica(1))
		Eventually(own.Replica(2).Log).Should(ContainSubstring("forked off current database system timeline"))
		Expect(replayLSN(ctx, diverged)).To(Equal(ahead))
		Expect(visible(ctx, diverged, lost)).To(BeTrue())
		Expect(visible(ctx, diverged, id)).To(BeFalse())
		Expect(insertLSN(ctx, p)).To(BeNumerically(">", ahead))
		Expect(recorded(ctx, diverged)).To(Equal(1), "which tells it apart")
		sample, err := watcher.NewProbe(diverged).Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(sample.Position.Timeline).To(BeEquivalentTo(1), "nor does it ask its upstream for the new one")
	})

	It("has its position satisfied by servers without it, once they have written enough", func(ctx SpecContext) {
		exec(ctx, p, bulk+bulk)
		_, later := write(ctx, p)
		Expect(later).To(BeNumerically(">=", pos))
		Expect(visible(ctx, p, lost)).To(BeFalse())

		r := dial(ctx, own.Replica(1))
		awaitReplay(ctx, r, later)
		Expect(replayLSN(ctx, r)).To(BeNumerically(">=", pos))
		Expect(visible(ctx, r, lost)).To(BeFalse())
	})

	It("leaves an old primary that takes writes when it comes back, as the same system on the old timeline", func(ctx SpecContext) {
		Expect(old.Start(ctx)).To(Succeed())
		c := dial(ctx, old)
		Expect(inRecovery(ctx, c)).To(BeFalse())
		write(ctx, c)
		Expect(visible(ctx, c, lost)).To(BeTrue())
		Expect(get[int64](ctx, c, systemID)).To(Equal(system))
		Expect(get[int](ctx, c, "select "+walTimeline)).To(Equal(1))
		Expect(get[int64](ctx, p, systemID)).To(Equal(system))
		Expect(get[int](ctx, p, "select "+walTimeline)).To(Equal(2))
	})
})
