package facts_test

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/jackc/pgx/v5"
)

var _ = Describe("COMMIT and a position query sent together", func() {
	together := map[string]func(ctx context.Context, c *pgx.Conn) string{
		"as one message": func(ctx context.Context, c *pgx.Conn) string {
			GinkgoHelper()
			res, err := message(ctx, c, "commit; select "+insertSQL)
			Expect(err).NotTo(HaveOccurred())
			Expect(res).To(HaveLen(2))
			Expect(res[0].CommandTag.String()).To(Equal("COMMIT"))
			return text(res[1])
		},
		"as two messages in one packet": func(ctx context.Context, c *pgx.Conn) string {
			GinkgoHelper()
			return packet(ctx, c, "commit", "select "+insertSQL)[1]
		},
	}

	for how, send := range together {
		for _, mode := range []string{"on", "off"} {
			It("tell a position that covers the commit, "+how+", with synchronous_commit = "+mode, func(ctx SpecContext) {
				p := dial(ctx, cluster.Primary())
				exec(ctx, p, "set synchronous_commit = "+mode)
				commit := func() committed {
					w := begun(ctx, p)
					w.insert = number(send(ctx, p))
					Expect(p.PgConn().TxStatus()).To(BeEquivalentTo('I'))
					return w
				}
				early := 0
				for range 100 {
					w := commit()
					early += count(roundDown(w.insert) <= w.start)
				}
				Expect(early).To(BeZero())
				expectCovered(ctx, cluster.Replica(1), commit)
			})
		}
	}

	Context("as one message", func() {
		It("give nothing but the error when a deferred constraint fails", func(ctx SpecContext) {
			p := dial(ctx, cluster.Primary())
			exec(ctx, p, "begin")
			exec(ctx, p, "insert into parts values (-1)")
			res, err := message(ctx, p, "commit; select "+insertSQL)
			Expect(code(err)).To(Equal("23503"))
			Expect(res).To(BeEmpty())
			Expect(p.PgConn().TxStatus()).To(BeEquivalentTo('I'))
			Expect(get[int](ctx, p, "select count(*) from parts")).To(BeZero())
		})

		It("give a position and no error after a transaction that had failed: only the tag tells", func(ctx SpecContext) {
			p := dial(ctx, cluster.Primary())
			id := failed(ctx, p)
			res, err := message(ctx, p, "commit; select "+insertSQL)
			Expect(err).NotTo(HaveOccurred())
			Expect(res).To(HaveLen(2))
			Expect(res[0].CommandTag.String()).To(Equal("ROLLBACK"))
			Expect(number(text(res[1]))).NotTo(BeZero())
			Expect(visible(ctx, p, id)).To(BeFalse())
		})

		It("keep a failed transaction from ending if the query goes first", func(ctx SpecContext) {
			p := dial(ctx, cluster.Primary())
			failed(ctx, p)
			res, err := message(ctx, p, "select "+insertSQL+"; commit")
			Expect(code(err)).To(Equal("25P02"))
			Expect(res).To(BeEmpty())
			Expect(p.PgConn().TxStatus()).To(BeEquivalentTo('E'))
			exec(ctx, p, "rollback")
		})
	})
})

// failed leaves a connection in a transaction that has failed after an insert.
func failed(ctx context.Context, c *pgx.Conn) (id int64) {
	GinkgoHelper()
	id = newID()
	exec(ctx, c, "begin")
	insert(ctx, c, id)
	_, err := message(ctx, c, "insert into facts (id) values ("+strconv.FormatInt(id, 10)+")")
	Expect(code(err)).To(Equal("23505"))
	return id
}
