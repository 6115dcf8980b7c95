package facts_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/jackc/pgx/v5"
)

// stuck is a commit that waits for a synchronous standby which does not exist:
// replicas have it, the primary does not show it.
type stuck struct {
	id       int64
	top, sub int64 // the transaction, and the subtransaction that wrote the row
	done     <-chan error
	release  func(context.Context)
}

func stick(ctx context.Context, p *pgx.Conn) *stuck {
	GinkgoHelper()
	replicated(ctx, cluster)
	t := &stuck{id: newID(), release: alterSystem(ctx, cluster.Primary(), "synchronous_standby_names", "missing")}
	w := dial(ctx, cluster.Primary())
	exec(ctx, w, "begin")
	t.top = get[int64](ctx, w, "select pg_current_xact_id()::text::bigint")
	exec(ctx, w, "savepoint s")
	insert(ctx, w, t.id)
	t.sub = get[int64](ctx, w, "select xmin::text::bigint from facts where id = $1", t.id)
	exec(ctx, w, "release s")
	t.done = async(func() error { _, err := w.Exec(ctx, "commit"); return err })
	awaitWait(ctx, p, w.PgConn().PID(), "SyncRep")
	return t
}

func (t *stuck) end(ctx context.Context) {
	GinkgoHelper()
	Expect(t.done).NotTo(Receive())
	t.release(ctx)
	Expect(await(t.done)).To(Succeed())
}

// snapshot is what a server shows now: transactions before max but those running.
type snapshot struct {
	max     int64
	running []int64
}

func snapshotOf(ctx context.Context, c *pgx.Conn) (s snapshot) {
	GinkgoHelper()
	Expect(c.QueryRow(ctx, `select pg_snapshot_xmax(s)::text::bigint,
		array(select x::text::bigint from pg_snapshot_xip(s) x) from pg_current_snapshot() s`).
		Scan(&s.max, &s.running)).To(Succeed())
	return s
}

const statusSQL = "select pg_xact_status($1::text::xid8)"

var _ = Describe("A replica", func() {
	var p, r *pgx.Conn
	BeforeEach(func(ctx SpecContext) { p, r = dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0)) })

	It("may show a commit before the primary does, which no position can tell", func(ctx SpecContext) {
		t := stick(ctx, p)
		Eventually(visible).WithArguments(ctx, r, t.id).Should(BeTrue())
		seen := replayLSN(ctx, r)
		Expect(insertLSN(ctx, p)).To(BeNumerically(">=", seen))
		Expect(visible(ctx, p, t.id)).To(BeFalse())

		t.end(ctx)
		Expect(visible(ctx, p, t.id)).To(BeTrue())
	})

	It("knows the commit of a transaction that the primary's snapshot lists as running", func(ctx SpecContext) {
		t := stick(ctx, p)
		exec(ctx, p, "set synchronous_commit = local")
		write(ctx, p)
		Eventually(visible).WithArguments(ctx, r, t.id).Should(BeTrue())
		Expect(visible(ctx, p, t.id)).To(BeFalse())
		Expect(snapshotOf(ctx, p).running).To(Equal([]int64{t.top}), "and not the subtransaction")
		Expect(get[string](ctx, r, statusSQL, t.top)).To(Equal("committed"))
		Expect(get[string](ctx, r, statusSQL, t.sub)).To(Equal("committed"))

		t.end(ctx)
		Expect(snapshotOf(ctx, p).running).To(BeEmpty())
	})

	// Until a later transaction has ended the snapshot's end is before the stuck one,
	// so that the list alone proves nothing.
	It("knows the commit of a transaction behind the end of the primary's snapshot, which does not list it", func(ctx SpecContext) {
		t := stick(ctx, p)
		Eventually(visible).WithArguments(ctx, r, t.id).Should(BeTrue())
		Expect(visible(ctx, p, t.id)).To(BeFalse())
		Expect(snapshotOf(ctx, p).running).To(BeEmpty())
		Expect(snapshotOf(ctx, p).max).To(BeNumerically("<=", t.top))
		Expect(snapshotOf(ctx, r).max).To(BeNumerically(">", t.sub))

		t.end(ctx)
		Expect(snapshotOf(ctx, p).max).To(BeNumerically(">", t.sub))
	})

	It("knows a running transaction as such, and has an error for one it has not heard of", func(ctx SpecContext) {
		w := dial(ctx, cluster.Primary())
		for range 3 { // unless something else flushes what it has written
			replicated(ctx, cluster)
			exec(ctx, w, "begin")
			insert(ctx, w, newID())
			xid := get[int64](ctx, w, "select pg_current_xact_id()::text::bigint")
			if _, err := r.Exec(ctx, statusSQL, xid); err == nil {
				exec(ctx, w, "rollback")
				continue
			} else {
				Expect(code(err)).To(Equal("22023"))
			}
			write(ctx, p)
			replicated(ctx, cluster)
			Expect(snapshotOf(ctx, p).running).To(Equal([]int64{xid}))
			Expect(get[string](ctx, r, statusSQL, xid)).To(Equal("in progress"))
			exec(ctx, w, "rollback")
			return
		}
		Fail("the replica knew every transaction before it was flushed")
	})
})

var _ = Describe("A floor for later reads", func() {
	It("is too low if taken from a sample before the read, and right from one after it", func(ctx SpecContext) {
		replicated(ctx, cluster)
		p, r1, r2 := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0)), dial(ctx, cluster.Replica(1))
		for _, s := range cluster.Replicas() {
			pause(ctx, s)
		}
		id, pos := write(ctx, p)
		before := replayLSN(ctx, r1)
		resume(ctx, cluster.Replica(0))
		Eventually(visible).WithArguments(ctx, r1, id).Should(BeTrue())
		after := replayLSN(ctx, r1)

		Expect(visible(ctx, r2, id)).To(BeFalse())
		Expect(replayLSN(ctx, r2)).To(BeNumerically(">=", before))
		Expect(replayLSN(ctx, r2)).To(BeNumerically("<", after))
		Expect(after).To(BeNumerically(">=", pos))
	})
})
