//go:build linux || darwin

package local

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Every cluster is a copy of one template, and would therefore have the same
// system identifier as every other one: two of them in one test could not be
// told apart. So each gets an identifier of its own, which PostgreSQL keeps in
// two places: at the start of global/pg_control, a structure that ends with a
// CRC-32C of what precedes (src/include/catalog/pg_control.h), and in the header
// of each WAL segment's first page (src/include/access/xlog_internal.h).

// newIdentity returns an identifier made as initdb does: seconds since 1970 in
// the upper half, something unlikely to repeat in the lower.
func newIdentity() uint64 {
	return uint64(time.Now().Unix())<<32 | uint64(rand.Uint32())
}

func setIdentity(dataDir string, id uint64) error {
	if err := patchControl(filepath.Join(dataDir, "global", "pg_control"), id); err != nil {
		return err
	}
	wal := filepath.Join(dataDir, "pg_wal")
	entries, err := os.ReadDir(wal)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if segmentName.MatchString(entry.Name()) {
			if err := patchSegment(filepath.Join(wal, entry.Name()), id); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	segmentName = regexp.MustCompile(`^[0-9A-F]{24}$`)
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	order       = binary.NativeEndian
)

func patchControl(path string, id uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end, err := crcOffset(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	order.PutUint64(data, id)
	order.PutUint32(data[end:], crc32.Checksum(data[:end], castagnoli))
	return os.WriteFile(path, data, 0o600)
}

// crcOffset finds the end of the structure, whose length differs from version
// to version: the first place that holds the checksum of everything before it.
func crcOffset(data []byte) (int, error) {
	const least, most = 128, 512
	for end := least; end <= most && end+4 <= len(data); end += 4 {
		if order.Uint32(data[end:]) == crc32.Checksum(data[:end], castagnoli) {
			return end, nil
		}
	}
	return 0, fmt.Errorf("no checksum found in %d bytes", len(data))
}

// systemIDOffset is where XLogLongPageHeaderData keeps xlp_sysid.
const systemIDOffset = 24

func patchSegment(path string, id uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var text [8]byte
	order.PutUint64(text[:], id)
	if _, err := f.WriteAt(text[:], systemIDOffset); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
