package policy

import (
	"database/sql"
	"math"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// first always takes the first.
type first struct{}

func (first) Pick(rs []*Replica) *Replica { return rs[0] }

func replicas(t *testing.T, n int) []*Replica {
	g := watcher.NewGroup(watcher.Config{}, "p", nil)
	rs := make([]*Replica, n)
	for i := range rs {
		rs[i] = &Replica{Node: g.Primary, Pool: noPool(t)}
	}
	return rs
}

// picks counts what a balancer takes.
func picks(b Balancer, rs []*Replica, n int) map[*Replica]int {
	count := map[*Replica]int{}
	for range n {
		count[b.Pick(rs)]++
	}
	return count
}

func TestLeastBusyPrefersTheLessBusy(t *testing.T) {
	rs := replicas(t, 2)
	for range 3 {
		rs[0].Begin()
	}
	rs[1].Begin()
	if have := picks(LeastBusy(), rs, 200); have[rs[1]] != 200 {
		t.Errorf("3 against 1 reads under way: have %d of 200 for the less busy one", have[rs[1]])
	}
	rs[0].End()
	rs[0].End()
	rs[0].End()
	if rs[0].Busy() != 0 {
		t.Errorf("busy: have %d, want 0", rs[0].Busy())
	}
	if have := picks(LeastBusy(), rs, 200); have[rs[0]] != 200 {
		t.Errorf("0 against 1: have %d of 200 for the less busy one", have[rs[0]])
	}
}

func TestLeastBusyOfManyAvoidsTheBusiest(t *testing.T) {
	rs := replicas(t, 5)
	for i, r := range rs {
		for range i {
			r.Begin()
		}
	}
	have := picks(LeastBusy(), rs, 2000)
	if have[rs[4]] != 0 {
		t.Errorf("the busiest was taken %d times, although another is drawn beside it", have[rs[4]])
	}
	if have[rs[0]] < have[rs[1]] || have[rs[1]] < have[rs[2]] || have[rs[2]] < have[rs[3]] || have[rs[3]] == 0 {
		t.Errorf("have %v, want the less busy the more often, and not one alone", have)
	}
}

func TestBalancersUseEveryReplica(t *testing.T) {
	for name, b := range map[string]Balancer{
		"least busy": LeastBusy(), "random": Random(), "round robin": RoundRobin(), "dbresolver's random": Resolver(dbresolver.RandomPolicy{}),
	} {
		rs := replicas(t, 4)
		have := picks(b, rs, 800)
		for i, r := range rs {
			if have[r] < 100 {
				t.Errorf("%s: replica %d was taken %d times of 800", name, i, have[r])
			}
		}
	}
}

func TestRoundRobinTakesTurns(t *testing.T) {
	rs, b := replicas(t, 3), &roundRobin{}
	for _, from := range []uint64{0, math.MaxInt64 - 1, math.MaxUint64 - 1} {
		b.n.Store(from)
		for range 4 { // over the end of the counter's range
			b.Pick(rs)
		}
	}
	b.n.Store(0)
	for i := range 9 {
		if have := b.Pick(rs); have != rs[i%3] {
			t.Errorf("turn %d: not replica %d", i, i%3)
		}
	}
}

// choose is a dbresolver policy.
type choose func([]gorm.ConnPool) gorm.ConnPool

func (c choose) Resolve(pools []gorm.ConnPool) gorm.ConnPool { return c(pools) }

func TestResolverLeavesTheChoiceToAPolicy(t *testing.T) {
	rs := replicas(t, 3)
	var shown []gorm.ConnPool
	last := Resolver(choose(func(pools []gorm.ConnPool) gorm.ConnPool {
		shown = pools
		return pools[len(pools)-1]
	}))
	if last.Pick(rs) != rs[2] || len(shown) != 3 || shown[0] != gorm.ConnPool(rs[0].Pool) {
		t.Errorf("not the policy's choice of %d", len(shown))
	}
	other := Resolver(choose(func([]gorm.ConnPool) gorm.ConnPool { return (*sql.DB)(nil) }))
	if other.Pick(rs) != rs[0] {
		t.Error("a pool that is none of them: want the first")
	}
}

func TestBalancerIsNotAskedAboutOne(t *testing.T) {
	r := newRig(t, Settings{Balancer: choose1{t}}, 1000, 10)
	r.want(r.decide(r.read(wrote(900))), 0, CaughtUp)
}

type choose1 struct{ t *testing.T }

func (c choose1) Pick(rs []*Replica) *Replica {
	c.t.Errorf("asked about %d", len(rs))
	return nil
}

// A balancer that takes none leaves the read to the primary.
func TestBalancerThatTakesNone(t *testing.T) {
	r := newRig(t, Settings{Balancer: none{}}, 1000, 1000)
	r.want(r.decide(&Request{Set: r.set, Level: StaleOK}), -1, NoneHealthy)
	r.want(r.decide(r.read(wrote(900))), -1, Behind)
}

type none struct{}

func (none) Pick([]*Replica) *Replica { return nil }
