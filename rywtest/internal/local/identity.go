//go:build linux || darwin

package local

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/sysid"
)

// setIdentity gives a copy of the template a system identifier.
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

var segmentName = regexp.MustCompile(`^[0-9A-F]{24}$`)

func patchControl(path string, id uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	crc, at, err := sysid.Control(data, id)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	binary.NativeEndian.PutUint32(data[at:], crc)
	return os.WriteFile(path, data, 0o600)
}

func patchSegment(path string, id uint64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	text := binary.NativeEndian.AppendUint64(nil, id)
	if _, err := f.WriteAt(text, sysid.SegmentOffset); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
