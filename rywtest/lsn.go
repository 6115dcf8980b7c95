package rywtest

import "fmt"

// LSN is a position in PostgreSQL's write-ahead log, in bytes. Positions compare
// as numbers as long as no failover lies between them.
type LSN uint64

// String returns the form PostgreSQL prints, "A2C/FE118820".
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

// geometry is what WAL positions are rounded by.
type geometry struct{ block, segment uint64 }

// Sizes of the headers that stand at the start of each WAL page and of each
// segment's first page (SizeOfXLogShortPHD and SizeOfXLogLongPHD).
const (
	pageHeader    = 24
	segmentHeader = 40
)

// round takes back a page header at the end of a position. When the last record
// ends at the edge of a page, the primary's insert position already includes the
// header of the next one; no record can end there, and a standby that has
// replayed everything stays at the edge, possibly for minutes.
func (g geometry) round(l LSN) LSN {
	switch {
	case uint64(l)%g.segment == segmentHeader:
		return l - segmentHeader
	case uint64(l)%g.block == pageHeader:
		return l - pageHeader
	}
	return l
}
