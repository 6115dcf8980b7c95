//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/proc"
)

// alive reports whether the server's process runs; n.mu is held.
func (n *Node) alive() bool { return !n.server.Ended() }

// Done returns the channel that the waiting goroutine closes.
func (n *Node) Done() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.Done()
}

// PID is the id of the postmaster.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return 0
	}
	return n.server.PID
}

// retries bounds how long Start tries again when something that passes stands in
// its way.
const retries = 10 * time.Second

// Start starts the server. A port that was taken in the meantime is replaced as
// long as nobody knows it; otherwise, and while processes of an earlier run are
// still leaving, it tries again.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.removed {
		return backend.ErrClosed
	}
	if n.alive() {
		return backend.ErrRunning
	}
	var last error // why it was tried again
	for deadline := time.Now().Add(retries); ; {
		err := n.launch(ctx)
		if err == nil {
			n.served, n.frozen = true, false
			return nil
		}
		if !passing(err) || time.Now().After(deadline) {
			return errors.Join(err, last)
		}
		last = err
		if err := n.evade(ctx, err); err != nil {
			return errors.Join(err, last)
		}
	}
}

// refusal is a server that ended before it listened.
type refusal struct {
	cause error
	log   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("server ended before it listened: %v\n%s", r.cause, r.log)
}

func (r *refusal) Unwrap() error { return r.cause }

func (r *refusal) says(what string) bool { return strings.Contains(r.log, what) }

const portTaken = "could not bind"

// passing reports whether the same start may succeed in a moment: texts of
// PostgreSQL for a port in use and for processes of an earlier run.
func passing(err error) bool {
	var r *refusal
	return errors.As(err, &r) &&
		(r.says(portTaken) || r.says("pre-existing shared memory block") || r.says(`lock file "postmaster.pid" already exists`))
}

// evade changes the port if that helps and is possible, or waits a little.
func (n *Node) evade(ctx context.Context, err error) error {
	var r *refusal
	if errors.As(err, &r) && r.says(portTaken) && !n.served {
		n.port, err = backend.ReplacePort(n.port, n.in)
		return err
	}
	return backend.Pause(ctx, 50*time.Millisecond)
}

// launch runs the server and waits until it listens or has ended.
func (n *Node) launch(ctx context.Context) error {
	addresses := backend.Render(map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(n.port.Number()), "unix_socket_directories": n.b.sockets,
	})
	if err := n.b.account.writeFile(filepath.Join(n.dir, "postgresql.conf"), n.conf+addresses); err != nil {
		return err
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before := fileSize(log)
	p, err := n.b.launch(n.dir, log, "postgres", "-D", n.dir)
	if err != nil {
		return err
	}
	n.server = p
	return n.awaitListening(ctx, before)
}

func (n *Node) awaitListening(ctx context.Context, logged int64) error {
	p := n.server
	err := poll(ctx, 2*time.Millisecond, func() (bool, error) {
		if p.Ended() {
			return false, &refusal{cause: p.Err(), log: tail(n.log, logged)}
		}
		return n.listens(p.PID), context.Cause(n.b.ctx)
	})
	if err != nil && !p.Ended() {
		return errors.Join(err, p.kill(context.WithoutCancel(ctx)))
	}
	return err
}

// listens reports whether postmaster.pid is of this process and has its eighth
// line, the status, which is written after the sockets were opened (PostgreSQL
// source, src/include/utils/pidfile.h).
func (n *Node) listens(pid int) bool {
	lines := n.pidFile()
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) != ""
}

func (n *Node) pidFile() []string {
	text, err := os.ReadFile(filepath.Join(n.dir, "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// signals of PostgreSQL's manual, 19.5 "Shutting Down the Server".
var signals = map[backend.Mode]syscall.Signal{backend.Fast: syscall.SIGINT, backend.Immediate: syscall.SIGQUIT}

// Shutdown sends the signal of the mode and waits, without holding up others:
// a shutdown that hangs can be cut short by Kill.
func (n *Node) Shutdown(ctx context.Context, m backend.Mode) error {
	n.mu.Lock()
	p, err := n.responsive()
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if err := proc.Signal(p.ID, signals[m]); err != nil {
		return err
	}
	return p.Await(ctx)
}

// responsive returns the process if it runs and is not frozen; n.mu is held.
func (n *Node) responsive() (*process, error) {
	if !n.alive() {
		return nil, backend.ErrNotRunning
	}
	if n.frozen {
		return nil, backend.ErrFrozen
	}
	return n.server, nil
}

// Kill sends SIGKILL to all processes and clears away what they could not.
func (n *Node) Kill(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	if err := n.server.kill(ctx); err != nil {
		return err
	}
	n.frozen = false
	return n.sweep()
}

// KillProcess sends SIGKILL to one child.
func (n *Node) KillProcess(_ context.Context, pid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.responsive()
	if err != nil {
		return err
	}
	info, err := proc.Get(pid)
	if err != nil || info.Parent != p.PID {
		return fmt.Errorf("process %d is not one of the server's", pid)
	}
	return proc.Signal(info.ID, syscall.SIGKILL)
}

// Freeze stops the postmaster and its children by SIGSTOP.
func (n *Node) Freeze(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	n.frozen = true // even if it fails half way: Thaw shall work
	_, err := n.server.stop(ctx)
	return err
}

// Thaw continues them by SIGCONT.
func (n *Node) Thaw(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	if err := n.server.resume(); err != nil {
		return err
	}
	n.frozen = false
	return nil
}
