//go:build linux || darwin

package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// copyTree copies the files below src into the existing directory dst and gives
// them to the account. Data directories of servers that do not run hold only
// directories and files.
func (a account) copyTree(src, dst string) error {
	err := filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == src {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return a.copyEntry(path, filepath.Join(dst, rel), entry)
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", src, err)
	}
	return nil
}

func (a account) copyEntry(src, dst string, entry fs.DirEntry) error {
	switch {
	case entry.IsDir():
		return a.mkdir(dst)
	case entry.Type().IsRegular():
		return a.copyFile(src, dst)
	}
	return fmt.Errorf("%s is neither a file nor a directory", src)
}

func (a account) copyFile(src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	if err := copySparse(out, in); err != nil {
		return err
	}
	if a.drop {
		return out.Chown(a.uid, a.gid)
	}
	return nil
}

// block is the unit in which zeros are left out.
const block = 32 << 10

var (
	zeros   [block]byte
	buffers = sync.Pool{New: func() any { return new([block]byte) }}
)

// copySparse leaves out blocks of zeros, which make up most of a new cluster's
// WAL.
func copySparse(out, in *os.File) error {
	buf := buffers.Get().(*[block]byte)
	defer buffers.Put(buf)
	for size := int64(0); ; {
		n, err := io.ReadFull(in, buf[:])
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
