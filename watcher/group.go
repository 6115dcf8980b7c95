package watcher

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// Defaults of Config.
const (
	DefaultIdleInterval = time.Second
	DefaultWaitInterval = time.Millisecond
	DefaultProbeTimeout = time.Second
)

// Config says how a group is watched. Zero fields take the defaults.
type Config struct {
	// IdleInterval is the shortest time between probes of a node that nobody
	// waits for. Up to a quarter is added at random.
	IdleInterval time.Duration
	// WaitInterval is the time between probes of a node that somebody waits for.
	WaitInterval time.Duration
	// ProbeTimeout ends a probe, connecting included.
	ProbeTimeout time.Duration
	// Name tells clusters with the same system identifier apart; usually empty.
	Name string
	// Notify is told of events, in the order in which they happen and while the
	// group is locked: it must neither wait nor call the watcher. Nil: nobody is.
	Notify func(Event)
}

func (c Config) withDefaults() Config {
	if c.IdleInterval == 0 {
		c.IdleInterval = DefaultIdleInterval
	}
	if c.WaitInterval == 0 {
		c.WaitInterval = DefaultWaitInterval
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = DefaultProbeTimeout
	}
	return c
}

// Group is one cluster: a primary and the replicas that follow it. Safe for
// concurrent use.
type Group struct {
	// Primary is the node that takes the writes.
	Primary *Node

	cfg  Config
	name uint64
	key  atomic.Pointer[token.Key]

	timeline atomic.Uint32
	lineage  lineage

	mu       sync.Mutex // protects publishing, and replicas while one is added
	replicas []*Node
	past     history
	ages     history // the same in larger steps
	recent   history // and in smaller ones
	closed   bool
	changed  atomic.Pointer[chan struct{}] // closed and replaced by each publication
}

// NewGroup returns the group of one primary. Nothing runs until a node is
// started or asked.
func NewGroup(cfg Config, primary string, dial Dial) *Group {
	g := &Group{cfg: cfg.withDefaults(), name: token.NameHash(cfg.Name), lineage: lineage{turn: newTurn()}, ages: history{step: ageStep}, recent: history{step: recentStep}}
	g.key.Store(&token.Key{Name: g.name})
	ch := make(chan struct{})
	g.changed.Store(&ch)
	g.Primary = newNode(g, primary, Primary, dial)
	return g
}

// Add adds a replica and starts to probe it, and the primary with it. A reason
// why its pool's connections cannot be proven to be to the server that is probed
// keeps it from serving token reads; empty means that they are.
func (g *Group) Add(name string, dial Dial, untrusted string) *Node {
	n := newNode(g, name, Replica, dial)
	if untrusted != "" {
		n.untrusted.Store(&untrusted)
	}
	g.mu.Lock()
	g.replicas = append(g.replicas, n)
	n.closed = g.closed
	g.mu.Unlock()
	g.Primary.Start()
	n.Start()
	return n
}

// Trust takes back the reason why the node's pool serves no token reads: its
// connections are admitted now.
func (n *Node) Trust() {
	n.untrusted.Store(nil)
	n.group.update(n, func(old *State) *State {
		if old.Incarnation == 0 || old.Failed {
			return old
		}
		return n.judge(old.Sample, old)
	})
}

// Replicas returns the nodes that were added.
func (g *Group) Replicas() []*Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*Node(nil), g.replicas...)
}

// Key is the key of this cluster's entry in tokens, as far as it is known. The
// system identifier becomes known with the first answer of the primary.
func (g *Group) Key() token.Key { return *g.key.Load() }

// Known reports whether the system identifier is known.
func (g *Group) Known() bool { return g.key.Load().System != 0 }

// Changed returns a channel that is closed when any node's state is published
// next.
func (g *Group) Changed() <-chan struct{} { return *g.changed.Load() }

// update replaces a node's state and tells who waits.
func (g *Group) update(n *Node, next func(old *State) *State) {
	g.mu.Lock()
	old := n.state.Load()
	st := next(old)
	n.state.Store(st)
	g.notifyChange(n, old, st)
	if n.role == Primary && st != old {
		g.primaryPublished(old, st)
	}
	ch := make(chan struct{})
	before := g.changed.Swap(&ch)
	g.mu.Unlock()
	close(*before)
}

// raise takes up the timeline of a primary: of two the later was promoted.
func (g *Group) raise(timeline uint32) {
	for {
		known := g.timeline.Load()
		if timeline <= known {
			return
		}
		if g.timeline.CompareAndSwap(known, timeline) {
			if known != 0 {
				g.notify(Event{Kind: Promoted, Node: g.Primary, OldTimeline: known, NewTimeline: timeline})
			}
			return
		}
	}
}

// primaryPublished judges the replicas anew by what the primary said.
func (g *Group) primaryPublished(old, st *State) {
	if !st.Healthy {
		return
	}
	g.past.add(st.Sample)
	g.ages.add(st.Sample)
	g.recent.add(st.Sample)
	g.raise(st.Position.Timeline)
	if g.Key().System != st.System {
		g.key.Store(&token.Key{System: st.System, Name: g.name})
	}
	news := !old.Healthy || old.System != st.System || old.Position.Timeline != st.Position.Timeline
	for _, r := range g.replicas {
		before := r.state.Load()
		if before.Incarnation == 0 { // nothing is known
			continue
		}
		rs := before
		if news {
			rs = r.judge(rs.Sample, rs)
		}
		rs = rs.compare(st.Sample)
		r.state.Store(rs)
		g.notifyChange(r, before, rs)
	}
}

// Close stops and joins everything that was started. Idempotent.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	nodes := append([]*Node{g.Primary}, g.replicas...)
	g.mu.Unlock()
	for _, n := range nodes {
		n.close()
	}
}
