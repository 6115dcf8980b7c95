package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
)

// Dial opens a connection to a node for the watcher's own use. It must not take
// one from the application's pool.
type Dial func(ctx context.Context) (*pgx.Conn, error)

// Role is what a node is used as.
type Role uint8

// The roles of a node.
const (
	Replica Role = iota
	Primary
)

// Errors of a node's samples.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("watcher is closed")
	// ErrWrongRole is returned for the sample of a primary that answers as a
	// standby.
	ErrWrongRole = errors.New("server is a standby, want the primary")
)

// primaryLanes is how many position queries of a primary may be under way at the
// same time: with one, a capture waits for the whole of its predecessor's round
// trip before its own begins.
const primaryLanes = 2

// Node is one server as the watcher sees it. Safe for concurrent use.
type Node struct {
	name  atomic.Pointer[string]
	role  Role
	dial  Dial
	group *Group

	state     atomic.Pointer[State]  // what routing reads; never nil
	untrusted atomic.Pointer[string] // why its pool serves no token reads; nil when it may
	epoch     atomic.Int32           // connections opened in an earlier epoch are given up
	placed    atomic.Bool            // it once gave a position of its own, as a standby
	lives     atomic.Int64           // how often another life of a server was published
	life      token.Incarnation      // the last of them; protected by group.mu

	mu      sync.Mutex // protects everything down to lastErr
	next    *batch     // the position query that callers may still join
	closed  bool
	started bool
	retryAt mono.Instant // no new connection before this
	backoff time.Duration
	lastErr error

	wake   chan struct{}   // one for each batch that waits for a lane
	kick   chan struct{}   // tells the prober that somebody waits
	demand atomic.Int32    // readers waiting for this node
	ctx    context.Context // ends with cause ErrClosed
	cancel context.CancelCauseFunc
	done   sync.WaitGroup

	asks asker

	samples atomic.Int64 // position queries sent
	joined  atomic.Int64 // calls of Sample served by them
}

// batch is one position query and those who wait for it.
type batch struct {
	done   chan struct{} // closed when sample and err are set
	sample Sample
	err    error
}

func newNode(g *Group, name string, role Role, dial Dial) *Node {
	n := &Node{
		role: role, dial: dial, group: g,
		wake: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		asks: asker{turn: newTurn()},
	}
	n.name.Store(&name)
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.state.Store(&State{Reason: "not asked yet"})
	return n
}

// Name is the node's host and port, without credentials.
func (n *Node) Name() string { return *n.name.Load() }

// Rename gives the node a name that only its first connection could tell.
func (n *Node) Rename(name string) { n.name.Store(&name) }

// Group is the cluster the node belongs to.
func (n *Node) Group() *Group { return n.group }

// State returns what is known of the node. It never waits and the result must
// not be changed.
func (n *Node) State() *State { return n.state.Load() }

// Counters returns how many position queries were sent and how many calls of
// Sample they served.
func (n *Node) Counters() (queries, calls int64) { return n.samples.Load(), n.joined.Load() }

// Sample asks the node for its position by a query that begins after this call.
// It starts the node's goroutines if they are not running yet. The error is
// ctx's cause, ErrClosed, or what went wrong with the query, which is shared
// with everyone who joined it.
func (n *Node) Sample(ctx context.Context) (Sample, error) {
	b, err := n.join()
	if err != nil {
		return Sample{}, err
	}
	select {
	case <-b.done:
		return b.sample, b.err
	case <-ctx.Done():
		return Sample{}, fmt.Errorf("position of %s: %w", n.Name(), context.Cause(ctx))
	}
}

func (n *Node) join() (*batch, error) {
	n.joined.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("position of %s: %w", n.Name(), ErrClosed)
	}
	n.startLocked()
	if n.next == nil {
		if mono.Now() < n.retryAt {
			return nil, n.lastErr
		}
		n.next = &batch{done: make(chan struct{})}
		select {
		case n.wake <- struct{}{}:
		default: // a lane will look anyway
		}
	}
	return n.next, nil
}

// Start begins to probe in the background. Without it, probing begins with the
// first call of Sample.
func (n *Node) Start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.startLocked()
	}
}

func (n *Node) startLocked() {
	if n.started {
		return
	}
	n.started = true
	lanes := 1
	if n.role == Primary {
		lanes = primaryLanes
	}
	for range lanes {
		n.done.Add(1)
		go n.lane()
	}
	n.done.Add(1)
	go n.prober()
}

// close stops the node's goroutines and waits for them. Idempotent.
func (n *Node) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.cancel(ErrClosed)
	n.done.Wait()
	_ = n.asks.turn.take(context.Background()) // whose context has no end
	n.asks.close()
	n.asks.turn.leave()
	n.failPending()
	n.fail(ErrClosed)
}

func (n *Node) failPending() {
	n.mu.Lock()
	b := n.next
	n.next = nil
	n.mu.Unlock()
	if b != nil {
		b.err = fmt.Errorf("position of %s: %w", n.Name(), ErrClosed)
		close(b.done)
	}
}

// lane takes samples, one at a time, on a connection of its own.
func (n *Node) lane() {
	defer n.done.Done()
	var p *Probe
	defer func() { p.close() }()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wake:
		}
		if b := n.take(); b != nil {
			b.sample, p, b.err = n.run(p)
			close(b.done)
		}
	}
}

func (n *Node) take() *batch {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.next
	n.next = nil
	return b
}

// run takes one sample, connecting first when there is no connection, and
// publishes it. A failed connection is closed; nil is returned for it.
func (n *Node) run(p *Probe) (Sample, *Probe, error) {
	n.samples.Add(1)
	ctx, cancel := context.WithTimeoutCause(n.ctx, n.group.cfg.ProbeTimeout,
		fmt.Errorf("probe timeout of %s passed", n.group.cfg.ProbeTimeout))
	defer cancel()
	s, p, err := n.sampleOn(ctx, p)
	if err != nil {
		p.close()
		err = fmt.Errorf("position of %s: %w", n.Name(), causeOf(ctx, err))
		n.fail(err)
		return Sample{}, nil, err
	}
	n.publish(s)
	if n.role == Primary && s.Standby {
		p.close() // the address may lead to the primary next time
		return s, nil, fmt.Errorf("position of %s: %w", n.Name(), ErrWrongRole)
	}
	return s, p, nil
}

func (n *Node) sampleOn(ctx context.Context, p *Probe) (Sample, *Probe, error) {
	if epoch := n.epoch.Load(); p == nil || p.epoch != epoch {
		p.close()
		conn, err := n.dial(ctx)
		if err != nil {
			return Sample{}, nil, err
		}
		p = &Probe{conn: conn, epoch: epoch}
		if err := supported(conn); err != nil {
			return Sample{}, p, err
		}
	}
	s, err := p.Take(ctx)
	return s, p, err
}

func (p *Probe) close() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // the connection is given up either way
	// A query that failed leaves pgx waiting for the server's last words, for 15
	// seconds. Without the socket that ends at once.
	pc := p.conn.PgConn()
	_ = pc.Conn().Close()
	<-pc.CleanupDone()
}

// causeOf adds why ctx ended to an error that only says that it did.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

const (
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
)

// fail publishes that nothing is known of the node and puts off the next
// attempt. What an earlier connection said died with it.
func (n *Node) fail(err error) {
	n.mu.Lock()
	n.backoff = min(max(2*n.backoff, firstBackoff), maxBackoff)
	n.retryAt = mono.Now().Add(n.backoff)
	n.lastErr = err
	n.mu.Unlock()
	n.group.update(n, func(old *State) *State {
		return &State{Reason: err.Error(), Failed: true, At: mono.Now(), High: old.High, diverged: old.diverged}
	})
}

// prober asks now and then when nobody waits, and without pause while somebody
// does.
func (n *Node) prober() {
	defer n.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.kick:
		case <-timer.C:
		}
		_, _ = n.Sample(n.ctx) // published, with its error
		timer.Reset(n.pause())
	}
}

func (n *Node) pause() time.Duration {
	if n.demand.Load() > 0 {
		return n.group.cfg.WaitInterval
	}
	return jitter(n.group.cfg.IdleInterval)
}
