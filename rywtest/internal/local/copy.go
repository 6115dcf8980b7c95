//go:build linux || darwin

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// block is the unit of copying, in which zeros are left out.
const block = 32 << 10

// copier copies files and gives them to an account. Its buffer is not of Go's
// heap: the race detector, under which most tests run, takes five times as long
// to keep track of what is read into one.
type copier struct {
	to          account
	buf, zeroes []byte
}

// copyTree copies the files below src into the existing directory dst and gives
// them to the account. Data directories of servers that do not run hold only
// directories and files.
func (a account) copyTree(ctx context.Context, src, dst string) error {
	memory, err := unix.Mmap(-1, 0, 2*block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("copy %s: buffer: %w", src, err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	c := copier{to: a, buf: memory[:block], zeroes: memory[block:]}
	err = filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == src {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return c.entry(path, filepath.Join(dst, rel), entry)
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", src, err)
	}
	return nil
}

func (c copier) entry(src, dst string, entry fs.DirEntry) error {
	switch {
	case entry.IsDir():
		return c.to.mkdir(dst)
	case entry.Type().IsRegular():
		return c.file(src, dst)
	}
	return fmt.Errorf("%s is neither a file nor a directory", src)
}

func (c copier) file(src, dst string) (err error) {
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
	if err := c.content(out, in); err != nil {
		return err
	}
	if c.to.drop {
		return out.Chown(c.to.uid, c.to.gid)
	}
	return nil
}

// content leaves out blocks of zeros, which make up most of a new cluster's WAL.
func (c copier) content(out, in *os.File) error {
	for size := int64(0); ; {
		n, err := io.ReadFull(in, c.buf)
		if n > 0 && !bytes.Equal(c.buf[:n], c.zeroes[:n]) {
			if _, err := out.WriteAt(c.buf[:n], size); err != nil {
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
