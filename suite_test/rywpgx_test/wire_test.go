package rywpgx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// wire counts round trips on the connections of a pool and cuts them.
type wire struct {
	trips atomic.Int64 // packets sent after something had been received

	mu    sync.Mutex // protects what follows
	fault *fault
	conns int
}

// fault is what is to happen to one connection, once.
type fault struct {
	text string // of the packet that it happens to
	// unsent loses the packet; else it reaches the server.
	unsent bool
	// ready is how many answers the client gets, up to their ReadyForQuery, before
	// the connection breaks.
	ready int
	// deaf has the client hear nothing any more, while what it sends arrives.
	deaf bool
	// silent delays what comes behind until it is closed, instead of breaking.
	silent chan struct{}
}

var errCut = errors.New("wire was cut")

// tap is for stdlib.OptionBeforeConnect.
func (w *wire) tap(_ context.Context, cfg *pgx.ConnConfig) error {
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.conns++
		w.mu.Unlock()
		return &wireConn{Conn: conn, w: w, moved: make(chan struct{}, 1)}, nil
	}
	return nil
}

func (w *wire) cut(f fault) {
	w.mu.Lock()
	w.fault = &f
	w.mu.Unlock()
}

// pending reports whether the fault is still to happen.
func (w *wire) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault != nil
}

func (w *wire) take(packet []byte) *fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fault
	if f == nil || !bytes.Contains(packet, []byte(f.text)) {
		return nil
	}
	w.fault = nil
	return f
}

// count returns how many round trips do makes.
func (w *wire) count(do func()) int64 {
	before := w.trips.Load()
	do()
	return w.trips.Load() - before
}

func (w *wire) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns
}

type wireConn struct {
	net.Conn
	w        *wire
	answered atomic.Bool

	mu       sync.Mutex // protects what follows
	fault    *fault
	deadline time.Time
	moved    chan struct{} // told that the deadline has moved

	seen int    // answers since the fault
	part []byte // of a message that is not complete
	late []byte // read, and to be delivered behind the fault
}

func (c *wireConn) Write(p []byte) (int, error) {
	if c.answered.Swap(false) {
		c.w.trips.Add(1)
	}
	if f := c.w.take(p); f != nil {
		c.mu.Lock()
		c.fault = f
		c.mu.Unlock()
		if f.unsent {
			c.Conn.Close()
			return 0, errCut
		}
	}
	return c.Conn.Write(p)
}

func (c *wireConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	f := c.fault
	c.mu.Unlock()
	switch {
	case f != nil && c.seen < f.ready:
		n, err := c.Conn.Read(p)
		return c.upTo(p[:n], f.ready), err
	case f != nil && f.deaf:
		return 0, io.EOF
	case f != nil && f.silent == nil:
		// The server acts on what it got: only then is the connection lost.
		_, _ = c.Conn.Read(make([]byte, 1))
		c.Conn.Close()
		return 0, errCut
	case f != nil:
		if err := c.wait(f.silent); err != nil {
			return 0, err
		}
		if len(c.late) > 0 {
			n := copy(p, c.late)
			c.late = c.late[n:]
			return n, nil
		}
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}

// upTo returns how much of b is up to the last answer that is to come.
func (c *wireConn) upTo(b []byte, ready int) int {
	all := append(c.part, b...)
	pos := 0
	for pos+5 <= len(all) {
		size := 1 + int(all[pos+1])<<24 + int(all[pos+2])<<16 + int(all[pos+3])<<8 + int(all[pos+4])
		if pos+size > len(all) {
			break
		}
		pos += size
		if all[pos-size] != 'Z' {
			continue
		}
		if c.seen++; c.seen == ready {
			c.late = append([]byte(nil), all[pos:]...)
			return pos - (len(all) - len(b))
		}
	}
	c.part = append([]byte(nil), all[pos:]...)
	return len(b)
}

// wait returns nil when silence has ended, or that the deadline has passed.
func (c *wireConn) wait(end <-chan struct{}) error {
	for {
		c.mu.Lock()
		var due <-chan time.Time
		if !c.deadline.IsZero() {
			due = time.After(time.Until(c.deadline))
		}
		c.mu.Unlock()
		select {
		case <-end:
			return nil
		case <-due:
			return os.ErrDeadlineExceeded
		case <-c.moved:
		}
	}
}

func (c *wireConn) SetReadDeadline(t time.Time) error {
	c.move(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *wireConn) SetDeadline(t time.Time) error {
	c.move(t)
	return c.Conn.SetDeadline(t)
}

func (c *wireConn) move(t time.Time) {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}
