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
	suspected atomic.Int64           // see Suspect
	life      token.Incarnation      // the last of them; protected by group.mu
	pace      pace                   // protected by group.mu

	mu      sync.Mutex // protects everything down to lastErr
	next    *batch     // the position query that callers may still join
	closed  bool
	started bool
	retryAt mono.Instant // no new connection before this
	backoff time.Duration
	lastErr error

	wake   chan struct{}   // one for each batch that waits for a lane
	kick   chan struct{}   // tells the prober that somebody waits
	wanted atomic.Int64    // when somebody wants it asked, at the latest; zero: nobody
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

// IsPrimary reports whether the node is used as a primary.
func (n *Node) IsPrimary() bool { return n.role == Primary }

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
	s, _, err := n.SampleShared(ctx)
	return s, err
}

// SampleShared is Sample and reports whether the query was another call's, which this
// one joined.
func (n *Node) SampleShared(ctx context.Context) (s Sample, shared bool, err error) {
	b, shared, err := n.join()
	if err != nil {
		return Sample{}, false, err
	}
	select {
	case <-b.done:
		return b.sample, shared, b.err
	case <-ctx.Done():
		return Sample{}, shared, fmt.Errorf("position of %s: %w", n.Name(), context.Cause(ctx))
	}
}

// join returns the query that begins next, and whether somebody waits for it already.
func (n *Node) join() (b *batch, shared bool, err error) {
	n.joined.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, false, fmt.Errorf("position of %s: %w", n.Name(), ErrClosed)
	}
	n.startLocked()
	if n.next != nil {
		return n.next, true, nil
	}
	if mono.Now() < n.retryAt {
		return nil, false, n.lastErr
	}
	n.next = &batch{done: make(chan struct{})}
	select {
	case n.wake <- struct{}{}:
	default: // a lane will look anyway
	}
	return n.next, false, nil
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

// AskBy has the node asked for its position at a time at the latest, by a question
// that begins after this call; the answer is published. Those who want it meanwhile
// share it, and what they wanted later is forgotten with it: whoever still waits
// then has to ask again.
func (n *Node) AskBy(at mono.Instant) {
	for {
		before := n.wanted.Load()
		if before != 0 && before <= int64(at) {
			return
		}
		if n.wanted.CompareAndSwap(before, int64(max(at, 1))) {
			break
		}
	}
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// prober asks now and then when nobody waits, and when it is wanted.
func (n *Node) prober() {
	defer n.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last, idle mono.Instant // when it was asked, and is to be if nobody waits
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.kick:
		case <-timer.C:
		}
		if wait := n.due(last, idle).Sub(mono.Now()); wait > 0 {
			timer.Reset(wait)
			continue
		}
		n.wanted.Store(0) // before the question begins
		last = mono.Now()
		_, _ = n.Sample(n.ctx) // published, with its error
		idle = n.nextIdle()
		timer.Reset(n.due(last, idle).Sub(mono.Now()))
	}
}

// nextIdle is when to ask next if nobody waits: one that failed, as soon as it may be.
func (n *Node) nextIdle() mono.Instant {
	next := mono.Now().Add(jitter(n.group.cfg.IdleInterval))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retryAt != 0 {
		next = min(next, n.retryAt)
	}
	return next
}

// due is when the prober has to ask next.
func (n *Node) due(last, idle mono.Instant) mono.Instant {
	if wanted := mono.Instant(n.wanted.Load()); wanted != 0 {
		return min(max(wanted, last.Add(n.group.cfg.WaitInterval)), idle)
	}
	return idle
}
