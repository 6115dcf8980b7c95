package facts_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The replay position is what can be read. What was received is not, and is ahead
// of it for as long as anything holds up replay.
var _ = Describe("The replay position", func() {
	It("stands still while replay is paused; the receive position goes on", func(ctx SpecContext) {
		replicated(ctx, cluster)
		p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		pause(ctx, cluster.Replica(0))
		paused := replayLSN(ctx, r)
		id, pos := write(ctx, p)
		Eventually(receiveLSN).WithArguments(ctx, r).Should(BeNumerically(">=", pos))
		Expect(replayLSN(ctx, r)).To(Equal(paused))
		Expect(paused).To(BeNumerically("<", pos))
		Expect(visible(ctx, r, id)).To(BeFalse())
		Expect(get[string](ctx, r, "select pg_get_wal_replay_pause_state()")).To(Equal("paused"))

		resume(ctx, cluster.Replica(0))
		awaitReplay(ctx, r, pos)
		Expect(visible(ctx, r, id)).To(BeTrue())
		Expect(get[string](ctx, r, "select pg_get_wal_replay_pause_state()")).To(Equal("not paused"))
	})

	It("stops at the start of a commit that is delayed; the receive position goes on", func(ctx SpecContext) {
		replicated(ctx, cluster)
		holdCommits(ctx, cluster.Replica(0))
		p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		w := commit(ctx, p)
		end := roundDown(w.insert)
		Eventually(receiveLSN).WithArguments(ctx, r).Should(BeNumerically(">=", end))
		awaitReplay(ctx, r, w.start)
		Expect(replayLSN(ctx, r)).To(BeNumerically("<", end))
		Expect(visible(ctx, r, w.id)).To(BeFalse())
	})

	It("stops before what conflicts with a running query; the receive position goes on", func(ctx SpecContext) {
		p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		gone, pos := write(ctx, p)
		awaitReplay(ctx, r, pos)
		reading := dial(ctx, cluster.Replica(0))
		exec(ctx, reading, "begin isolation level repeatable read")
		Expect(visible(ctx, reading, gone)).To(BeTrue())

		exec(ctx, p, "delete from facts where id = $1", gone)
		exec(ctx, p, "vacuum facts")
		id, pos := write(ctx, p)
		Eventually(receiveLSN).WithArguments(ctx, r).Should(BeNumerically(">=", pos))
		Eventually(func() bool { return visible(ctx, r, gone) }).Should(BeFalse(), "the deletion is before the conflict")
		Expect(replayLSN(ctx, r)).To(BeNumerically("<", pos))
		Expect(visible(ctx, r, id)).To(BeFalse())
		Expect(visible(ctx, reading, gone)).To(BeTrue())

		exec(ctx, reading, "rollback")
		awaitReplay(ctx, r, pos)
		Expect(visible(ctx, r, id)).To(BeTrue())
	})
})
