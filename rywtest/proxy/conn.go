package proxy

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// conn is one connection through the proxy: a client, a target, and a pipe for
// each direction.
type conn struct {
	p      *Proxy
	client *net.TCPConn
	up     *pipe // from the client
	down   *pipe // to the client

	ctx    context.Context // ends when the connection is cut
	cancel context.CancelFunc

	answered atomic.Bool // the last bytes seen came from the server
	muted    atomic.Bool // the next answer is to be lost
	lost     atomic.Bool // it was: the client is gone

	mu     sync.Mutex   // protects server
	server *net.TCPConn // nil until dialled
}

func newConn(p *Proxy, client *net.TCPConn) *conn {
	c := &conn{p: p, client: client}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.up = newPipe(c, newFrontend(c).see)
	c.down = newPipe(c, c.seeAnswer)
	return c
}

// run passes bytes until both directions have ended or the connection was cut.
func (c *conn) run() {
	if server, ok := c.dial(); ok {
		var both sync.WaitGroup
		both.Go(func() { c.up.run(c.client, server) })
		both.Go(func() { c.down.run(server, c.client) })
		both.Wait()
		if c.ctx.Err() == nil { // both ends have said goodbye
			_, _ = c.client.Close(), server.Close()
		}
	}
	c.cut()
}

// dial connects to the target, once the network is there. The client cannot tell
// a target that refuses from a connection that is reset.
func (c *conn) dial() (*net.TCPConn, bool) {
	select {
	case <-c.p.passage():
	case <-c.ctx.Done():
		return nil, false
	}
	var d net.Dialer
	dialled, err := d.DialContext(c.ctx, "tcp", c.p.currentTarget())
	if err != nil {
		return nil, false
	}
	server := dialled.(*net.TCPConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		_ = server.Close()
		return nil, false
	}
	c.server = server
	return server, true
}

// cut resets the connection at the client, closes it at the server, drops what is
// on its way and so ends the goroutines. It may be called again. The server sees
// an end, not a reset, so that it still reads what it was sent.
func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	reset(c.client)
	if c.server != nil {
		_ = c.server.Close()
	}
	c.up.clock.interrupt()
	c.down.clock.interrupt()
}

// reset closes a connection such that the other end sees an error, not an end.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if it is closed already
	_ = conn.Close()
}

// fail cuts a connection that has failed at one end, unless that end was cut on
// purpose and the other one still works.
func (c *conn) fail() {
	if !c.lost.Load() {
		c.cut()
	}
}

// seeAnswer watches what the server sends.
func (c *conn) seeAnswer(chunk []byte) ([]byte, verdict) {
	c.p.counts.down.Add(uint64(len(chunk)))
	c.answered.Store(true)
	if !c.muted.Load() {
		return chunk, pass
	}
	c.loseAnswer()
	return nil, cutNow
}

// loseAnswer resets the client, says goodbye to the server and lets it do all it
// was asked before it is cut off: a server that fails to send its answer may
// not look at later messages.
func (c *conn) loseAnswer() {
	c.lost.Store(true)
	reset(c.client)
	if c.server.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.server) // ends when the server does, or by cut
	}
}
