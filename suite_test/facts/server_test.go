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

// wal is how the servers' WAL is cut.
var wal struct{ page, segment rywtest.LSN }

// learnServer asks for what does not change, and has the report say the version.
func learnServer(ctx context.Context, c *pgx.Conn) {
	GinkgoHelper()
	AddReportEntry("server", get[string](ctx, c, "select version()"))
	wal.page = rywtest.LSN(get[int64](ctx, c, "select current_setting('wal_block_size')::bigint"))
	wal.segment = rywtest.LSN(get[int64](ctx, c, "select pg_size_bytes(current_setting('wal_segment_size'))"))
}

// roundDown takes back the page header that an insert position may end with; see
// the specs of the insert position at page edges.
func roundDown(pos rywtest.LSN) rywtest.LSN {
	switch {
	case pos%wal.segment == segmentHeader:
		return pos - segmentHeader
	case pos%wal.page == pageHeader:
		return pos - pageHeader
	}
	return pos
}

// usable counts the bytes before a position that are not page headers, so that
// a record of n bytes, rounded up to 8, takes n of them wherever it stands. The
// edge of a page and the end of the header behind it are the same place.
func usable(pos rywtest.LSN) int64 {
	pages := wal.segment / wal.page
	perSegment := wal.segment - segmentHeader - (pages-1)*pageHeader
	n := pos / wal.segment * perSegment
	page, in := pos%wal.segment/wal.page, pos%wal.page
	if page > 0 {
		n += wal.page - segmentHeader + (page-1)*(wal.page-pageHeader)
	}
	header := rywtest.LSN(pageHeader)
	if page == 0 {
		header = segmentHeader
	}
	return int64(n + max(in, header) - header)
}
