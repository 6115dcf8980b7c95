package facts_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

// Sizes of the headers at the start of each WAL page and of each segment's first
// page.
const (
	pageHeader    = 24
	segmentHeader = 40
)

// geometry is how a server's WAL is cut.
type geometry struct{ page, segment rywtest.LSN }

// shared is the geometry of the shared cluster, and of others that were made
// with the same arguments.
var shared geometry

// learnServer asks for what does not change, and has the report say the version.
func learnServer(ctx context.Context, c *pgx.Conn) {
	GinkgoHelper()
	AddReportEntry("server", get[string](ctx, c, "select version()"))
	shared = geometryOf(ctx, c)
}

func geometryOf(ctx context.Context, c *pgx.Conn) geometry {
	GinkgoHelper()
	return geometry{
		page:    rywtest.LSN(get[int64](ctx, c, "select current_setting('wal_block_size')::bigint")),
		segment: rywtest.LSN(get[int64](ctx, c, "select pg_size_bytes(current_setting('wal_segment_size'))")),
	}
}

// roundDown takes back the page header that an insert position may end with; see
// the specs of the insert position at page edges.
func roundDown(pos rywtest.LSN) rywtest.LSN { return shared.roundDown(pos) }

func (g geometry) roundDown(pos rywtest.LSN) rywtest.LSN {
	switch {
	case pos%g.segment == segmentHeader:
		return pos - segmentHeader
	case pos%g.page == pageHeader:
		return pos - pageHeader
	}
	return pos
}

// usable counts the bytes before a position that are not page headers, so that
// a record of n bytes, rounded up to 8, takes n of them wherever it stands. The
// edge of a page and the end of the header behind it are the same place.
func (g geometry) usable(pos rywtest.LSN) int64 {
	pages := g.segment / g.page
	perSegment := g.segment - segmentHeader - (pages-1)*pageHeader
	n := pos / g.segment * perSegment
	page, in := pos%g.segment/g.page, pos%g.page
	if page > 0 {
		n += g.page - segmentHeader + (page-1)*(g.page-pageHeader)
	}
	header := rywtest.LSN(pageHeader)
	if page == 0 {
		header = segmentHeader
	}
	return int64(n + max(in, header) - header)
}
