package facts_test

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

// A way to commit a row and to learn a position.
type capture func(ctx context.Context, c *pgx.Conn, id int64) rywtest.LSN

func insideTransaction(ctx context.Context, c *pgx.Conn, id int64) rywtest.LSN {
	exec(ctx, c, "begin")
	insert(ctx, c, id)
	pos := insertLSN(ctx, c)
	exec(ctx, c, "commit")
	return pos
}

func inOneMessage(ctx context.Context, c *pgx.Conn, id int64) rywtest.LSN {
	GinkgoHelper()
	res, err := message(ctx, c, "insert into facts (id) values ("+strconv.FormatInt(id, 10)+"); select "+insertSQL)
	Expect(err).NotTo(HaveOccurred())
	return number(text(res[1]))
}

func inOneBatch(ctx context.Context, c *pgx.Conn, id int64) (pos rywtest.LSN) {
	GinkgoHelper()
	b := &pgx.Batch{}
	b.Queue("insert into facts (id) values ($1)", id)
	b.Queue("select " + insertSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&pos) })
	// Without the simple protocol, as an application would send it.
	config := c.Config()
	config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	extended, err := pgx.ConnectConfig(ctx, config)
	Expect(err).NotTo(HaveOccurred())
	defer extended.Close(ctx)
	Expect(extended.SendBatch(ctx, b).Close()).To(Succeed())
	return pos
}

func inTheStatement(ctx context.Context, c *pgx.Conn, id int64) rywtest.LSN {
	GinkgoHelper()
	return rywtest.LSN(get[int64](ctx, c, "insert into facts (id) values ($1) returning "+insertSQL, id))
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func number(text string) rywtest.LSN {
	GinkgoHelper()
	n, err := strconv.ParseUint(text, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return rywtest.LSN(n)
}

var _ = Describe("A position read before the commit record exists", func() {
	// The replica stands at the start of the commit record, for good. Where it
	// satisfies the position, the position is worth nothing.
	DescribeTable("is satisfied by a replica without the row, when read",
		func(ctx SpecContext, capture capture) {
			replicated(ctx, cluster)
			holdCommits(ctx, cluster.Replica(1))
			p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(1))
			id := newID()
			early := roundDown(capture(ctx, p, id))
			Expect(visible(ctx, p, id)).To(BeTrue())

			awaitReplay(ctx, r, early)
			Expect(visible(ctx, r, id)).To(BeFalse())
		},
		Entry("inside the transaction", capture(insideTransaction)),
		Entry("in the message of an INSERT without BEGIN", capture(inOneMessage)),
		Entry("in the batch of an INSERT without BEGIN", capture(inOneBatch)),
		Entry("in the INSERT itself", capture(inTheStatement)),
	)
})

// committed is what is known of a commit: no position up to start, where its
// record begins, covers it.
type committed struct {
	id                            int64
	start, insert, written, flush rywtest.LSN
}

const positionsSQL = "select " + insertSQL + ", " + writtenSQL + ", " + flushSQL

// commit commits a row in a transaction and asks for the positions afterwards.
func commit(ctx context.Context, c *pgx.Conn) committed {
	GinkgoHelper()
	w := begun(ctx, c)
	exec(ctx, c, "commit")
	Expect(c.QueryRow(ctx, positionsSQL).Scan(&w.insert, &w.written, &w.flush)).To(Succeed())
	return w
}

// begun opens a transaction with all but its commit.
func begun(ctx context.Context, c *pgx.Conn) committed {
	GinkgoHelper()
	w := committed{id: newID()}
	exec(ctx, c, "begin")
	insert(ctx, c, w.id)
	w.start = roundDown(insertLSN(ctx, c))
	return w
}

// expectCovered makes a commit and shows that the insert position read after it
// covers it: while the replica may not apply the commit it is before the
// position, and once it has the position it shows the row.
func expectCovered(ctx context.Context, s *rywtest.Server, commit func() committed) {
	GinkgoHelper()
	replicated(ctx, cluster)
	release := holdCommits(ctx, s)
	r, w := dial(ctx, s), commit()
	awaitReplay(ctx, r, w.start)
	Expect(visible(ctx, r, w.id)).To(BeFalse())
	Expect(replayLSN(ctx, r)).To(BeNumerically("<", roundDown(w.insert)))

	release(ctx)
	awaitReplay(ctx, r, roundDown(w.insert))
	Expect(visible(ctx, r, w.id)).To(BeTrue())
}

var _ = Describe("A position read after COMMIT returned", func() {
	const commits = 100

	for _, mode := range []string{"off", "local", "on", "remote_write", "remote_apply"} {
		It("covers the commit as the insert position, and as others unless it is asynchronous; synchronous_commit = "+mode, func(ctx SpecContext) {
			alterSystem(ctx, cluster.Primary(), "synchronous_standby_names", cluster.Replica(0).Name())
			p := dial(ctx, cluster.Primary())
			Expect(get[int](ctx, p, "select count(*) from pg_stat_replication where sync_state = 'sync'")).To(Equal(1))
			exec(ctx, p, "set synchronous_commit = "+mode)

			written, flush, inserted := 0, 0, 0 // positions that do not cover their commit
			for range commits {
				w := commit(ctx, p)
				written += count(w.written <= w.start)
				flush += count(w.flush <= w.start)
				inserted += count(roundDown(w.insert) <= w.start)
			}
			want := BeZero()
			if mode == "off" {
				want = BeNumerically(">", 0)
			}
			Expect(inserted).To(BeZero(), "of %d pg_current_wal_insert_lsn()", commits)
			Expect(written).To(want, "of %d pg_current_wal_lsn()", commits)
			Expect(flush).To(want, "of %d pg_current_wal_flush_lsn()", commits)
			expectCovered(ctx, cluster.Replica(1), func() committed { return commit(ctx, p) })
		})
	}

	It("includes what other sessions have not flushed, which no replica has yet", func(ctx SpecContext) {
		replicated(ctx, cluster)
		p, other, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		unflushed := 0
		for range 10 {
			id := newID()
			insert(ctx, p, id)
			exec(ctx, other, "begin")
			insert(ctx, other, newID())
			pos := roundDown(insertLSN(ctx, p))
			have := replayLSN(ctx, r)
			if flush := flushLSN(ctx, p); flush < pos {
				unflushed++
				Expect(have).To(BeNumerically("<=", flush))
			}
			exec(ctx, other, "commit")
			awaitReplay(ctx, r, pos)
			Expect(visible(ctx, r, id)).To(BeTrue())
		}
		Expect(unflushed).To(BeNumerically(">", 0))
	})
})

var _ = Describe("Whether a commit is synchronous", func() {
	It("cannot be known before it: a deferred trigger decides inside COMMIT", func(ctx SpecContext) {
		p := dial(ctx, cluster.Primary())
		exec(ctx, p, `create table late (id bigint)`)
		DeferCleanup(func(ctx SpecContext) { exec(ctx, p, "drop table late; drop function hurry") })
		exec(ctx, p, `create function hurry() returns trigger language plpgsql as $$
			begin perform set_config('synchronous_commit', 'off', true); return null; end $$`)
		exec(ctx, p, `create constraint trigger hurry after insert on late
			deferrable initially deferred for each row execute function hurry()`)
		behind := 0
		for range 20 {
			w := begun(ctx, p)
			exec(ctx, p, "insert into late values (1)")
			w.start = roundDown(insertLSN(ctx, p))
			Expect(get[string](ctx, p, "show synchronous_commit")).To(Equal("on"))
			exec(ctx, p, "commit")
			flush := flushLSN(ctx, p)
			Expect(get[string](ctx, p, "show synchronous_commit")).To(Equal("on"))
			behind += count(flush <= w.start)
		}
		Expect(behind).To(BeNumerically(">", 0))
	})
})
