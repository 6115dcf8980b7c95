package policy

import (
	"database/sql"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Replica is a server that reads may be sent to, with the pool that leads there.
type Replica struct {
	Node *watcher.Node
	Pool *sql.DB
	// Checks says that the pool's driver can ask for the position together with
	// a read, so that the read itself may prove that it was fresh enough.
	Checks bool

	busy  atomic.Int64
	out   atomic.Bool // of rotation, see Rotate
	reads tally
}

// Busy is how many reads that were sent to the replica have not ended yet.
func (r *Replica) Busy() int64 { return r.busy.Load() }

// Begin counts a read that is being sent to the replica, End its end.
func (r *Replica) Begin() { r.busy.Add(1) }

// End ends what Begin began.
func (r *Replica) End() { r.busy.Add(-1) }

// Set is the replicas that are alternatives to each other: those of one resolver.
// Immutable.
type Set struct {
	Group    *watcher.Group
	Replicas []*Replica

	governor *governor // of Group's primary
}

// find returns the replica that is in the given life now.
func (s *Set) find(in token.Incarnation) *Replica {
	for _, r := range s.Replicas {
		if r.Node.State().Incarnation == in {
			return r
		}
	}
	return nil
}

// Pool is what is known of one connection pool.
type Pool struct {
	// Group is the cluster the pool leads to.
	Group *watcher.Group
	// Replica is nil for a pool that leads to a primary.
	Replica *Replica
	// Set holds Replica and its alternatives; nil for a primary.
	Set *Set
	// Reports says that the pool's driver reports the commits on it.
	Reports bool
}

// Pools knows the pools. Reading is wait-free. The zero value knows none.
type Pools struct {
	mu sync.Mutex // serializes changes
	m  atomic.Pointer[map[*sql.DB]*Pool]

	governors map[*watcher.Group]*governor // protected by mu
}

// Lookup returns what is known of a pool, or nil.
func (p *Pools) Lookup(db *sql.DB) *Pool {
	m := p.m.Load()
	if m == nil {
		return nil
	}
	return (*m)[db]
}

// All returns the pools that are known.
func (p *Pools) All() map[*sql.DB]*Pool {
	if m := p.m.Load(); m != nil {
		return *m
	}
	return nil
}

// AddPrimary records a pool that leads to a group's primary, and whether its
// driver reports the commits on it.
func (p *Pools) AddPrimary(db *sql.DB, g *watcher.Group, reports bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change(func(m map[*sql.DB]*Pool) { m[db] = &Pool{Group: g, Reports: reports} })
}

// AddSet records replicas that are alternatives to each other. Replicas of
// earlier sets that stand in it move there.
func (p *Pools) AddSet(g *watcher.Group, replicas []*Replica) *Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Set{Group: g, Replicas: slices.Clone(replicas), governor: p.governor(g)}
	p.change(func(m map[*sql.DB]*Pool) {
		for _, r := range s.Replicas {
			m[r.Pool] = &Pool{Group: g, Replica: r, Set: s}
		}
	})
	return s
}

// Clear forgets every pool.
func (p *Pools) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m.Store(nil)
}

func (p *Pools) change(change func(map[*sql.DB]*Pool)) {
	next := map[*sql.DB]*Pool{}
	for k, v := range p.All() {
		next[k] = v
	}
	change(next)
	p.m.Store(&next)
}
