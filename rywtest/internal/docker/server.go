//go:build linux || darwin

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// process is a server, seen through the "docker exec" that runs it; Backend.Close
// joins the goroutine that waits for it.
type process struct {
	*backend.Run           // nil if it never ran
	first        firstLine // its process id in the container
}

// alive reports whether the server runs; n.mu is held.
func (n *Node) alive() bool { return !n.server.Ended() }

// Done returns the channel that the waiting goroutine closes.
func (n *Node) Done() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.Done()
}

// PID is the id of the postmaster in its container.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return 0
	}
	pid, _ := strconv.Atoi(n.server.first.String())
	return pid
}

// launch becomes the server, after those processes of an earlier one have left that
// a lone death of its postmaster leaves behind. When none is there the lock files are
// of no use: the ids in them may be some other program's by now.
const launch = `left() { grep -qx postgres /proc/[0-9]*/comm 2>/dev/null; }
n=0
while left && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done
left || rm -f postmaster.pid /tmp/.s.PGSQL.*
echo $$
exec postgres -D "$PWD"`

// retries bounds how long Start tries again when something that passes stands in
// its way.
const retries = 10 * time.Second

// Start starts the server and waits until it listens.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.removed {
		return backend.ErrClosed
	}
	if n.alive() {
		return backend.ErrRunning
	}
	for deadline := time.Now().Add(retries); ; {
		err := n.try(ctx)
		if err == nil || !passing(err) || time.Now().After(deadline) {
			return err
		}
		if e := n.b.pause(ctx, 100*time.Millisecond); e != nil {
			return errors.Join(e, err)
		}
	}
}

// errRefused is of a server that ended before it listened.
var errRefused = errors.New("server ended before it listened")

// passing reports whether the same start may succeed in a moment: texts of the engine
// for a container that is just ending, and of PostgreSQL for what is left of an
// earlier run.
func passing(err error) bool {
	return errors.Is(err, errRefused) && slices.ContainsFunc([]string{
		"is not running", "pre-existing shared memory block", `lock file "postmaster.pid" already exists`,
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// try starts the server once; n.mu is held.
func (n *Node) try(ctx context.Context) error {
	n.up = n.up && n.server.Run == nil // the container may have ended with its server
	if err := n.ensure(ctx); err != nil {
		return err
	}
	logged := n.log.size()
	if err := n.launch(); err != nil {
		return err
	}
	err := n.awaitListening(ctx, logged)
	if err != nil && n.alive() {
		return errors.Join(err, n.kill(context.WithoutCancel(ctx)))
	}
	return err
}

// launch runs the server in the container, under the watchdog.
func (n *Node) launch() error {
	b := n.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	p := new(process)
	cmd := b.command(context.Background(), "exec", "--workdir="+dataDir, n.container, "sh", "-c", launch)
	cmd.Stdout, cmd.Stderr = &p.first, &n.log
	if _, err := b.dog.Start(cmd); err != nil {
		return err
	}
	p.Run = backend.NewRun(&b.servers, cmd.Wait)
	n.server, n.frozen = p, false
	return nil
}

func (n *Node) awaitListening(ctx context.Context, logged int) error {
	for {
		if n.server.Ended() {
			return fmt.Errorf("%w: %w\n%s", errRefused, n.server.Err(), n.log.since(logged))
		}
		if listens(n.port.Addr()) {
			return nil
		}
		if err := n.b.pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("server does not listen: %w\n%s", err, n.log.since(logged))
		}
	}
}

// sslRequest is the one message that every server answers, with one byte, without
// reading on (PostgreSQL manual, "Message Formats"). A connection alone says
// nothing: the engine accepts it before anybody listens in the container.
var sslRequest = []byte{0, 0, 0, 8, 4, 210, 22, 47}

func listens(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // cannot fail on an open connection
	if _, err := conn.Write(sslRequest); err != nil {
		return false
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err == nil
}

// signals of PostgreSQL's manual, 19.5 "Shutting Down the Server".
var signals = map[backend.Mode]string{backend.Fast: "INT", backend.Immediate: "QUIT"}

// Shutdown sends the signal of the mode and waits, without holding up others: a
// shutdown that hangs can be cut short by Kill.
func (n *Node) Shutdown(ctx context.Context, m backend.Mode) error {
	p, err := n.signal(ctx, signals[m])
	if err != nil {
		return err
	}
	return p.Await(ctx)
}

// signal sends the postmaster a signal.
func (n *Node) signal(ctx context.Context, name string) (*process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.responsive(); err != nil {
		return nil, err
	}
	if _, err := n.script(ctx, `kill -s "$1" "$2"`, name, n.server.first.String()); err != nil && n.alive() {
		return nil, err
	}
	return n.server, nil
}

// responsive returns nil if the server runs and is not frozen; n.mu is held.
func (n *Node) responsive() error {
	if !n.alive() {
		return backend.ErrNotRunning
	}
	if n.frozen {
		return backend.ErrFrozen
	}
	return nil
}

// Kill has the engine kill the container, frozen or not, and start it again without
// the server, so that its address refuses connections.
func (n *Node) Kill(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	return n.kill(ctx)
}

// kill ends everything in the container; n.mu is held.
func (n *Node) kill(ctx context.Context) error {
	if _, err := n.b.do(ctx, "kill", n.container); err != nil && !says(err, "is not running") {
		return err
	}
	n.up, n.frozen = false, false
	<-n.server.Done()
	return n.ensure(ctx)
}

// KillProcess sends SIGKILL to one child.
func (n *Node) KillProcess(ctx context.Context, pid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.responsive(); err != nil {
		return err
	}
	const script = `read -r _ _ _ parent _ <"/proc/$1/stat" && [ "$parent" = "$2" ] || { echo "process $1 is not one of the server's"; exit 1; }
kill -s KILL "$1"`
	_, err := n.script(ctx, script, strconv.Itoa(pid), n.server.first.String())
	return err
}

// Freeze has the engine pause the container.
func (n *Node) Freeze(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	if n.frozen {
		return nil
	}
	_, err := n.b.do(ctx, "pause", n.container)
	n.frozen = err == nil
	return err
}

// Thaw has it go on.
func (n *Node) Thaw(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return backend.ErrNotRunning
	}
	if !n.frozen {
		return nil
	}
	_, err := n.b.do(ctx, "unpause", n.container)
	n.frozen = err != nil
	return err
}
