//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/proc"
)

// goodbye is how long a server may take for an immediate shutdown before it is
// killed. PostgreSQL itself kills its children after 5 seconds.
const goodbye = 7 * time.Second

// close ends the server for good and gives back its addresses. Files are the
// back-end's to remove.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removed = true
	err := errors.Join(n.end(), n.sweep())
	if n.in != nil {
		err = errors.Join(err, n.in.Close())
	}
	if n.out != nil {
		err = errors.Join(err, n.out.Close())
	}
	n.port.Release()
	return err
}

// end makes the server leave at once: politely first, because only then it frees
// its shared memory itself.
func (n *Node) end() error {
	if !n.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if err := errors.Join(proc.Signal(n.server.ID, syscall.SIGQUIT), n.server.resume()); err != nil {
		return err
	}
	if n.server.Await(ctx) == nil {
		return nil
	}
	ctx, cancel = context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return n.server.kill(ctx)
}

// sweep clears away what a server that was killed leaves behind outside of its
// data directory, and the lock files that a reused process id would make look
// valid. After a clean end there is nothing of it.
func (n *Node) sweep() error {
	lines := n.pidFile()
	if lines == nil {
		return nil
	}
	if len(lines) >= 7 {
		freeSharedMemory(lines[6])
	}
	socket := filepath.Join(n.b.sockets, fmt.Sprintf(".s.PGSQL.%d", n.port.Number()))
	for _, path := range []string{socket, socket + ".lock", filepath.Join(n.dir, "postmaster.pid")} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// freeSharedMemory removes the System V segment, of a few bytes, that PostgreSQL
// holds as a lock. The line of postmaster.pid has its key and id. It may be gone
// already.
func freeSharedMemory(line string) {
	var key, id int
	if n, _ := fmt.Sscan(strings.TrimSpace(line), &key, &id); n == 2 {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}
