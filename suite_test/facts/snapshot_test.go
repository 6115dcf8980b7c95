package facts_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

const gateSQL = "select pg_advisory_lock(1)"

// throughGate lets a reading on the replica begin before a commit is replayed, has
// it wait at a gate, gateSQL, until it is, and returns what came of it. sql makes
// the reading's statements of one that tells whether the row is there.
func throughGate[T any](ctx context.Context, q *pgx.Conn, read func(exists string) T) (result T, pos rywtest.LSN) {
	GinkgoHelper()
	replicated(ctx, cluster)
	s := cluster.Replica(0)
	p, gate := dial(ctx, cluster.Primary()), dial(ctx, s)
	exec(ctx, gate, gateSQL)
	pause(ctx, s)
	id, pos := write(ctx, p)
	reading := async(func() T {
		return read(fmt.Sprintf("(select count(*) from facts where id = %d)", id))
	})
	awaitWait(ctx, gate, q.PgConn().PID(), "advisory")
	resume(ctx, s)
	awaitReplay(ctx, gate, pos)
	exec(ctx, gate, "select pg_advisory_unlock(1)")
	result = await(reading)
	Expect(visible(ctx, gate, id)).To(BeTrue())
	return result, pos
}

// createSpin makes a function that checks the replay position without a pause and
// reads with a new snapshot at the first moment that the position is past pos.
func createSpin(ctx context.Context, p *pgx.Conn) {
	GinkgoHelper()
	exec(ctx, p, `create function spin(pos pg_lsn, want bigint) returns boolean language plpgsql as $$
		begin
			while pg_last_wal_replay_lsn() <= pos loop end loop;
			return exists (select from facts where id = want);
		end $$`)
	DeferCleanup(func(ctx SpecContext) { exec(ctx, p, "drop function spin") })
	replicated(ctx, cluster)
}

var _ = Describe("A read after a check of the replay position", func() {
	It("never misses a row if its snapshot is newer than the check, on whichever connection that was", func(ctx SpecContext) {
		p, checking, other := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0)), dial(ctx, cluster.Replica(0))
		createSpin(ctx, p)
		sameConn, otherConn, transaction := 0, 0, 0
		for range 300 {
			w := begun(ctx, p)
			seen := async(func() bool {
				return get[bool](ctx, checking, "select spin($1, $2)", w.start.String(), w.id)
			})
			exec(ctx, p, "commit")
			sameConn += count(!await(seen))
			otherConn += count(!visible(ctx, other, w.id))
			exec(ctx, other, "begin isolation level repeatable read")
			transaction += count(!visible(ctx, other, w.id))
			exec(ctx, other, "commit")
		}
		Expect(sameConn).To(BeZero(), "misses on the connection of the check")
		Expect(otherConn).To(BeZero(), "misses on another connection")
		Expect(transaction).To(BeZero(), "misses in a transaction begun after the check")
	})

	It("misses the row inside a REPEATABLE READ transaction that was open at the check", func(ctx SpecContext) {
		q := dial(ctx, cluster.Replica(0))
		exec(ctx, q, "begin isolation level repeatable read")
		res, pos := throughGate(ctx, q, func(exists string) [2]int64 {
			exec(ctx, q, gateSQL)
			return [2]int64{int64(replayLSN(ctx, q)), get[int64](ctx, q, "select "+exists)}
		})
		Expect(res[0]).To(BeNumerically(">=", int64(pos)))
		Expect(res[1]).To(BeZero())
	})

	It("misses the row in the statement that checks", func(ctx SpecContext) {
		q := dial(ctx, cluster.Replica(0))
		res, pos := throughGate(ctx, q, func(exists string) [2]int64 {
			var r [2]int64
			sql := "select " + replaySQL + ", " + exists + " from (" + gateSQL + " offset 0) gate"
			Expect(q.QueryRow(ctx, sql).Scan(&r[0], &r[1])).To(Succeed())
			return r
		})
		Expect(res[0]).To(BeNumerically(">=", int64(pos)))
		Expect(res[1]).To(BeZero())
	})

	DescribeTable("in one message with it, as a statement of its own",
		func(ctx SpecContext, isolation string, rows string) {
			q := dial(ctx, cluster.Replica(0))
			exec(ctx, q, "set default_transaction_isolation = '"+isolation+"'")
			res, pos := throughGate(ctx, q, func(exists string) [2]string {
				res, err := message(ctx, q, gateSQL+"; select "+replaySQL+"; select "+exists)
				Expect(err).NotTo(HaveOccurred())
				return [2]string{text(res[1]), text(res[2])}
			})
			Expect(number(res[0])).To(BeNumerically(">=", pos))
			Expect(res[1]).To(Equal(rows))
		},
		Entry("sees the row under READ COMMITTED", "read committed", "1"),
		Entry("misses it under REPEATABLE READ: the message is one transaction", "repeatable read", "0"),
	)

	It("sees the row as a message of its own in the same packet, whatever the isolation", func(ctx SpecContext) {
		q := dial(ctx, cluster.Replica(0))
		exec(ctx, q, "set default_transaction_isolation = 'repeatable read'")
		res, pos := throughGate(ctx, q, func(exists string) []string {
			return packet(ctx, q, gateSQL, "select "+replaySQL, "select "+exists)
		})
		Expect(number(res[1])).To(BeNumerically(">=", pos))
		Expect(res[2]).To(Equal("1"))
	})
})

var _ = Describe("SERIALIZABLE on a standby", func() {
	It("fails, with the code of a stale plan, also as the default", func(ctx SpecContext) {
		c := dial(ctx, cluster.Replica(0))
		_, err := message(ctx, c, "begin isolation level serializable; select 1 from facts")
		Expect(code(err)).To(Equal("0A000"))
		exec(ctx, c, "rollback")
		exec(ctx, c, "set default_transaction_isolation = 'serializable'")
		_, err = c.Exec(ctx, "select 1 from facts")
		Expect(code(err)).To(Equal("0A000"))
	})

	It("shares that code with a prepared statement whose result has changed", func(ctx SpecContext) {
		p, r := dial(ctx, cluster.Primary()), dial(ctx, cluster.Replica(0))
		exec(ctx, r, "prepare stale as select * from facts")
		exec(ctx, r, "execute stale")
		exec(ctx, p, "alter table facts add column extra int")
		replicated(ctx, cluster)
		_, err := r.Exec(ctx, "execute stale")
		Expect(code(err)).To(Equal("0A000"))
		exec(ctx, p, "alter table facts drop column extra")
	})
})
