package policy

import (
	"math/rand/v2"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// Balancer chooses among replicas that may all serve a read. Implementations
// must be safe for concurrent use, must not keep the slice, and should not
// allocate. There are always two replicas or more.
type Balancer interface {
	Pick(replicas []*Replica) *Replica
}

// LeastBusy returns the balancer that draws two replicas at random and takes the
// one with fewer reads under way. It is the default.
func LeastBusy() Balancer { return leastBusy{} }

// Random returns the balancer that draws one replica at random.
func Random() Balancer { return random{} }

// RoundRobin returns a balancer that takes the replicas in turn.
func RoundRobin() Balancer { return &roundRobin{} }

// Resolver returns a balancer that leaves the choice to a dbresolver policy. The
// policy must be safe for concurrent use; dbresolver's own RoundRobinPolicy is
// not.
func Resolver(p dbresolver.Policy) Balancer { return resolver{p} }

type leastBusy struct{}

func (leastBusy) Pick(rs []*Replica) *Replica {
	i := rand.IntN(len(rs))
	j := rand.IntN(len(rs) - 1)
	if j >= i {
		j++
	}
	if rs[j].Busy() < rs[i].Busy() {
		return rs[j]
	}
	return rs[i]
}

type random struct{}

func (random) Pick(rs []*Replica) *Replica { return rs[rand.IntN(len(rs))] }

type roundRobin struct{ n atomic.Uint64 }

func (b *roundRobin) Pick(rs []*Replica) *Replica {
	return rs[(b.n.Add(1)-1)%uint64(len(rs))]
}

type resolver struct{ policy dbresolver.Policy }

func (b resolver) Pick(rs []*Replica) *Replica {
	pools := make([]gorm.ConnPool, len(rs))
	for i, r := range rs {
		pools[i] = r.Pool
	}
	chosen := b.policy.Resolve(pools)
	for _, r := range rs {
		if gorm.ConnPool(r.Pool) == chosen {
			return r
		}
	}
	return rs[0]
}
