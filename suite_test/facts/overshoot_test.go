package facts_test

import (
	"context"
	"math"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// steering makes commit records end where they are wanted.
type steering struct {
	c      *pgx.Conn
	commit int64 // usable bytes of a commit record
	filler int64 // of a message, beside its text
}

const minFiller = 512 // text of a message that surely has the long form of length

// newSteering measures. The server's own records may come between; the least of
// several measurements is without them.
func newSteering(ctx context.Context, c *pgx.Conn) *steering {
	GinkgoHelper()
	s := &steering{c: c, commit: math.MaxInt64, filler: math.MaxInt64}
	for range 5 {
		begun(ctx, c)
		at := s.at(ctx)
		s.fill(ctx, minFiller)
		s.filler = min(s.filler, s.at(ctx)-at-minFiller)
		at = s.at(ctx)
		exec(ctx, c, "commit")
		s.commit = min(s.commit, s.at(ctx)-at)
	}
	return s
}

func (s *steering) at(ctx context.Context) int64 {
	GinkgoHelper()
	return usable(insertLSN(ctx, s.c))
}

func (s *steering) fill(ctx context.Context, n int64) {
	GinkgoHelper()
	exec(ctx, s.c, "select pg_logical_emit_message(true, 'f', repeat('x', $1))", int(n))
}

// land makes a commit whose record ends past bytes behind the next edge of a page
// or segment, and returns the edge. The server's own records, which it writes
// every now and then, make it try again.
func (s *steering) land(ctx context.Context, unit, past rywtest.LSN) (id int64, edge rywtest.LSN) {
	GinkgoHelper()
	for range 10 {
		w := begun(ctx, s.c)
		edge = (insertLSN(ctx, s.c)/unit + 1) * unit
		for s.gap(ctx, edge+past) < s.filler+minFiller {
			edge += unit
		}
		s.fill(ctx, s.gap(ctx, edge+past)-s.filler)
		if s.gap(ctx, edge+past) != 0 {
			exec(ctx, s.c, "rollback")
			continue
		}
		exec(ctx, s.c, "commit")
		if end := insertLSN(ctx, s.c); roundDown(end) == edge+past {
			return w.id, edge
		}
	}
	Fail("could not have a commit record end where it was wanted")
	return 0, 0
}

// gap is how many usable bytes there are to where the commit record must begin.
func (s *steering) gap(ctx context.Context, end rywtest.LSN) int64 {
	GinkgoHelper()
	return usable(end) - s.commit - s.at(ctx)
}

var _ = Describe("The insert position at the edge of a WAL page", Ordered, func() {
	var (
		s     *steering
		r     *pgx.Conn
		probe *watcher.Probe
	)
	BeforeAll(func(ctx SpecContext) {
		replicated(ctx, cluster)
		s = newSteering(ctx, dial(ctx, cluster.Primary()))
		r = dial(ctx, cluster.Replica(0))
		probe = watcher.NewProbe(dial(ctx, cluster.Primary()))
	})

	// sample is the position that the library makes of it.
	sample := func(ctx context.Context) rywtest.LSN {
		GinkgoHelper()
		have, err := probe.Take(ctx)
		Expect(err).NotTo(HaveOccurred())
		return rywtest.LSN(have.Position.LSN)
	}

	// expectAt lands commits at a place relative to edges and shows for each that
	// the insert position is over bytes further, that the library's position is
	// what an idle replica gets to, and that the replica has the row then. What the
	// server itself has written into is done again.
	expectAt := func(ctx context.Context, commits int, unit, past, over rywtest.LSN) {
		GinkgoHelper()
		for tries := 2 * commits; commits > 0; tries-- {
			Expect(tries).To(BeNumerically(">", 0), "the server itself keeps writing")
			id, edge := s.land(ctx, unit, past)
			if unit == wal.page && edge%wal.segment == 0 {
				continue
			}
			inserted, sampled := insertLSN(ctx, s.c), sample(ctx)
			awaitReplay(ctx, r, edge+past)
			replayed := replayLSN(ctx, r)
			Expect(visible(ctx, r, id)).To(BeTrue())
			if insertLSN(ctx, s.c) != inserted {
				continue
			}
			Expect(inserted).To(Equal(edge + past + over))
			Expect(sampled).To(Equal(edge + past))
			Expect(replayed).To(Equal(edge + past))
			commits--
		}
	}

	It("is behind the next page's header, where no idle replica gets", func(ctx SpecContext) {
		expectAt(ctx, 40, wal.page, 0, pageHeader)
	})

	It("is behind the long header at the start of a segment", func(ctx SpecContext) {
		expectAt(ctx, 3, wal.segment, 0, segmentHeader)
	})

	It("stays out of the replica's reach until something else is written", func(ctx SpecContext) {
		_, edge := s.land(ctx, wal.page, 0)
		beyond := insertLSN(ctx, s.c)
		awaitReplay(ctx, r, edge)
		Consistently(func() bool {
			return replayLSN(ctx, r) < beyond || insertLSN(ctx, s.c) > beyond
		}, 500*time.Millisecond, 20*time.Millisecond).Should(BeTrue())
		id := newID()
		insert(ctx, s.c, id)
		awaitReplay(ctx, r, beyond)
	})

	It("is the commit's end at any other place, also 40 bytes behind a page's edge", func(ctx SpecContext) {
		for past := rywtest.LSN(pageHeader + 8); past <= pageHeader+64; past += 8 {
			expectAt(ctx, 2, wal.page, past, 0)
		}
	})
})
