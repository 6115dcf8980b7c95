//go:build linux || darwin

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// process is a server, seen through the "docker exec" that runs it. A goroutine
// waits for it and is joined by Backend.Close.
type process struct {
	first firstLine     // its process id in the container
	done  chan struct{} // closed when it has ended and err is set
	err   error
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// alive reports whether the server runs; n.mu is held.
func (n *Node) alive() bool { return n.server != nil && !n.server.ended() }

var closedChannel = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done returns the channel that the waiting goroutine closes.
func (n *Node) Done() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return closedChannel
	}
	return n.server.done
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
// a lone death of its postmaster leaves behind. When none is there the lock file is
// of no use: the id in it may be some other program's by now.
const launch = `left() { grep -qx postgres /proc/[0-9]*/comm 2>/dev/null; }
n=0
while left && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done
left || rm -f postmaster.pid
echo $$
exec postgres -D "$PWD"`

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
	n.up = n.up && n.server == nil // the container may have ended with its server
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
	p := &process{done: make(chan struct{})}
	cmd := b.command(context.Background(), "exec", "--workdir="+dataDir, n.container, "sh", "-c", launch)
	cmd.Stdout, cmd.Stderr = &p.first, &n.log
	if _, err := b.dog.Start(cmd); err != nil {
		return err
	}
	n.server, n.frozen = p, false
	b.servers.Go(func() {
		p.err = cmd.Wait()
		close(p.done)
	})
	return nil
}

func (n *Node) awaitListening(ctx context.Context, logged int) error {
	for {
		if n.server.ended() {
			return fmt.Errorf("server ended before it listened: %w\n%s", n.server.err, n.log.since(logged))
		}
		if n.listens() {
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

func (n *Node) listens() bool {
	conn, err := net.DialTimeout("tcp", n.Admin().String(), time.Second)
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
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server has not ended: %w", context.Cause(ctx))
	}
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
	if n.server != nil {
		<-n.server.done
	}
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
