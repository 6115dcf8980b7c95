// Package sysid gives copies of a database cluster identities of their own.
//
// Every test cluster is a copy of one template, and would therefore have the same
// system identifier as every other one: two of them in one test could not be told
// apart. PostgreSQL keeps the identifier in two places: at the start of
// global/pg_control, a structure that ends with a CRC-32C of what precedes
// (src/include/catalog/pg_control.h), and in the header of each WAL segment's
// first page (src/include/access/xlog_internal.h).
package sysid

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"
)

// SegmentOffset is where XLogLongPageHeaderData, at the start of a WAL segment,
// keeps xlp_sysid.
const SegmentOffset = 24

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	order      = binary.NativeEndian
)

// New returns an identifier made as initdb does: seconds since 1970 in the upper
// half, something unlikely to repeat in the lower.
func New() uint64 {
	return uint64(time.Now().Unix())<<32 | uint64(rand.Uint32())
}

// Control puts an identifier at the start of the content of pg_control, and
// returns the checksum that must stand at offset at, without putting it there.
func Control(data []byte, id uint64) (crc uint32, at int, err error) {
	if at, err = crcOffset(data); err != nil {
		return 0, 0, err
	}
	order.PutUint64(data, id)
	return crc32.Checksum(data[:at], castagnoli), at, nil
}

// crcOffset finds the end of the structure, whose length differs from version to
// version: the first place that holds the checksum of everything before it.
func crcOffset(data []byte) (int, error) {
	const least, most = 128, 512
	for end := least; end <= most && end+4 <= len(data); end += 4 {
		if order.Uint32(data[end:]) == crc32.Checksum(data[:end], castagnoli) {
			return end, nil
		}
	}
	return 0, fmt.Errorf("no checksum found in %d bytes", len(data))
}
