package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/freeport"
)

// ErrClosed is returned by methods of a proxy that was closed.
var ErrClosed = errors.New("proxy: closed")

// Options are the settings a proxy begins with.
type Options struct {
	// Delay is added in each direction; 0 adds none. See SetDelay.
	Delay time.Duration
}

// Proxy passes TCP connections on to a target. All methods may be called from
// several goroutines.
type Proxy struct {
	port      *freeport.Port
	delay     atomic.Int64
	counts    counts
	cutOn     hook // loses a message
	cutAnswer hook // loses an answer

	loops sync.WaitGroup // accept loops and connections

	mu       sync.Mutex // protects the fields below
	target   string
	listener net.Listener // nil while connections are refused
	conns    map[*conn]struct{}
	open     chan struct{} // closed unless partitioned
	closed   bool
}

// Counters are sums over all connections since the proxy was made.
type Counters struct {
	// Connections is the number of connections accepted.
	Connections uint64
	// RoundTrips is how often a client sent after the server had answered.
	RoundTrips uint64
	// BytesUp are the bytes received from clients.
	BytesUp uint64
	// BytesDown are the bytes received from the target.
	BytesDown uint64
}

type counts struct{ connections, roundTrips, up, down atomic.Uint64 }

// New listens on a free port of 127.0.0.1 for connections to target, which is
// host:port and is dialled anew for each connection. The caller must Close it.
func New(target string, o Options) (*Proxy, error) {
	port, err := freeport.Reserve()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{port: port, target: target, conns: map[*conn]struct{}{}, open: make(chan struct{})}
	close(p.open)
	p.SetDelay(o.Delay)
	if err := p.listen(); err != nil {
		port.Release()
		return nil, err
	}
	return p, nil
}

// listen begins to accept connections; p.mu is held or p is not shared yet.
func (p *Proxy) listen() error {
	listener, err := net.Listen("tcp4", p.port.Addr())
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	p.listener = listener
	p.loops.Go(func() { p.accept(listener) })
	return nil
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse or Close
		}
		p.begin(client.(*net.TCPConn))
	}
}

func (p *Proxy) begin(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		reset(client)
		return
	}
	p.counts.connections.Add(1)
	c := newConn(p, client)
	p.conns[c] = struct{}{}
	p.loops.Go(func() {
		c.run()
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	})
}

// Addr is the address to connect to, host:port.
func (p *Proxy) Addr() string { return p.port.Addr() }

// Host is the host of Addr.
func (p *Proxy) Host() string { return "127.0.0.1" }

// Port is the port of Addr.
func (p *Proxy) Port() int { return p.port.Number() }

// SetTarget sends new connections to another address, host:port; open ones stay.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *Proxy) currentTarget() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// SetDelay changes how long bytes are held back in each direction, for those that
// arrive from now on. Zero or less means not at all. Bytes never overtake others
// of their connection.
func (p *Proxy) SetDelay(d time.Duration) { p.delay.Store(int64(max(d, 0))) }

// Partition lets nothing through any more, in neither direction, until Heal:
// connections stay open, new ones are accepted and hear nothing. What was sent,
// the end of a connection too, is kept.
func (p *Proxy) Partition() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOpen() {
		p.open = make(chan struct{})
	}
}

// Heal ends a partition and delivers what was kept.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isOpen() {
		close(p.open)
	}
}

func (p *Proxy) isOpen() bool {
	select {
	case <-p.open:
		return true
	default:
		return false
	}
}

// passage returns a channel that is closed while nothing is partitioned.
func (p *Proxy) passage() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// CutAll resets all connections there are, at both ends, and drops what was on
// its way. New connections are accepted as before.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.cut()
	}
}

// Refuse makes new connections be refused (on) or accepted again; open ones stay.
// It fails if another program has taken the port meanwhile.
func (p *Proxy) Refuse(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case on && p.listener != nil:
		err := p.listener.Close()
		p.listener = nil
		return err
	case !on && p.listener == nil:
		return p.listen()
	}
	return nil
}

// Counters returns the sums so far.
func (p *Proxy) Counters() Counters {
	return Counters{
		Connections: p.counts.connections.Load(),
		RoundTrips:  p.counts.roundTrips.Load(),
		BytesUp:     p.counts.up.Load(),
		BytesDown:   p.counts.down.Load(),
	}
}

// Close stops listening, resets all connections and waits for all goroutines. It
// may be called again.
func (p *Proxy) Close() error {
	err := p.shut()
	p.CutAll()
	p.loops.Wait()
	p.port.Release()
	return err
}

func (p *Proxy) shut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.listener == nil {
		return nil
	}
	err := p.listener.Close()
	p.listener = nil
	return err
}
