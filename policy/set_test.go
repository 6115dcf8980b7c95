package policy

import (
	"sync"
	"testing"

	"gorm.io/gorm"
)

func TestPoolsKnowWhatTheyWereTold(t *testing.T) {
	var p Pools
	rs := replicas(t, 3)
	primary, unknown := noPool(t), noPool(t)
	g := rs[0].Node.Group()
	if p.Lookup(primary) != nil || len(p.All()) != 0 {
		t.Error("the zero value knows a pool")
	}
	p.AddPrimary(primary, g, true)
	given := rs[:2:2]
	set := p.AddSet(g, given)
	given[0] = nil // the set is its own
	if k := p.Lookup(primary); k == nil || k.Group != g || k.Replica != nil || k.Set != nil || !k.Reports {
		t.Errorf("primary: have %+v", k)
	}
	for i, r := range []*Replica{set.Replicas[0], rs[1]} {
		if k := p.Lookup(r.Pool); k == nil || k.Group != g || k.Replica != r || k.Set != set || len(k.Set.Replicas) != 2 {
			t.Errorf("replica %d: have %+v", i, k)
		}
	}
	if p.Lookup(rs[2].Pool) != nil || p.Lookup(unknown) != nil || len(p.All()) != 3 {
		t.Errorf("have %d pools, want 3", len(p.All()))
	}
	before := p.All()
	wider := p.AddSet(g, []*Replica{set.Replicas[0], rs[1], rs[2]})
	if k := p.Lookup(rs[1].Pool); k.Set != wider {
		t.Error("replica did not move to the wider set")
	}
	if before[rs[1].Pool].Set != set || len(before) != 3 {
		t.Error("what was read before has changed")
	}
	p.Clear()
	if p.Lookup(primary) != nil || len(p.All()) != 0 {
		t.Error("a pool is known after Clear")
	}
}

func TestPoolsConcurrently(t *testing.T) {
	var p Pools
	rs := replicas(t, 8)
	var wg sync.WaitGroup
	for _, r := range rs {
		wg.Go(func() {
			p.AddSet(r.Node.Group(), []*Replica{r})
			if k := p.Lookup(r.Pool); k == nil || k.Replica != r {
				t.Errorf("have %+v", k)
			}
		})
	}
	wg.Wait()
	if len(p.All()) != len(rs) {
		t.Errorf("have %d pools, want %d", len(p.All()), len(rs))
	}
}

func TestFindGoesByTheLifeOfNow(t *testing.T) {
	r := newRig(t, Settings{}, 900, 900)
	for i, rep := range r.set.Replicas {
		if have := r.set.find(rep.Node.State().Incarnation); have != rep {
			t.Errorf("replica %d is not found", i)
		}
	}
	old := r.node(0).State().Incarnation
	r.kill(r.servers[0], r.node(0))
	if r.set.find(old) != nil || r.set.find(12345) != nil {
		t.Error("a life that is over is found")
	}
}

func pools(r *rig) []gorm.ConnPool {
	var ps []gorm.ConnPool
	for _, rep := range r.set.Replicas {
		ps = append(ps, rep.Pool)
	}
	return ps
}

func TestResolveBalancesOverTheHealthy(t *testing.T) {
	r := newRig(t, Settings{}, 900, 10, 900)
	r.kill(r.servers[2], r.node(2))
	var seen [][]gorm.ConnPool
	p := r.router.Policy(func(pools []gorm.ConnPool) { seen = append(seen, pools) })
	count := map[gorm.ConnPool]int{}
	for range 400 {
		count[p.Resolve(pools(r))]++
	}
	for i, least := range []int{100, 100, 0} {
		have := count[r.set.Replicas[i].Pool]
		if have < least || least == 0 && have > 0 {
			t.Errorf("replica %d: taken %d times of 400", i, have)
		}
	}
	if len(seen) != 400 || len(seen[0]) != 3 {
		t.Errorf("pools were shown %d times", len(seen))
	}
}

// Without a healthy one any will do: the error is then the server's.
func TestResolveWithNoneHealthy(t *testing.T) {
	r := newRig(t, Settings{}, 900, 900)
	for i, s := range r.servers {
		r.kill(s, r.node(i))
	}
	foreign := []gorm.ConnPool{&gorm.PreparedStmtDB{}, noPool(t)}
	p := r.router.Policy(func([]gorm.ConnPool) {})
	for _, ps := range [][]gorm.ConnPool{pools(r), foreign, foreign[:1]} {
		if have := p.Resolve(ps); have != ps[0] && have != ps[len(ps)-1] {
			t.Errorf("have %v, want one of those asked about", have)
		}
	}
}

func TestForce(t *testing.T) {
	r := newRig(t, Settings{}, 900, 900, 900)
	p := r.router.Policy(func([]gorm.ConnPool) {})
	forced := r.set.Replicas[2].Pool
	p.Force(forced)
	for range 50 {
		if have := p.Resolve(pools(r)); have != gorm.ConnPool(forced) {
			t.Fatal("not the pool that was forced")
		}
	}
	if have := p.Resolve(pools(r)[:2]); have == gorm.ConnPool(forced) {
		t.Error("a pool that was not asked about")
	}
	p.Force(nil)
	count := map[gorm.ConnPool]int{}
	for range 200 {
		count[p.Resolve(pools(r))]++
	}
	if len(count) != 3 {
		t.Errorf("after Force(nil): have %d pools, want all three", len(count))
	}
}

func TestPrimaryIsNoAlternative(t *testing.T) {
	r := newRig(t, Settings{}, 900)
	source := noPool(t)
	r.router.Pools.AddPrimary(source, r.group, false)
	p := r.router.Policy(func([]gorm.ConnPool) {})
	for range 50 {
		if p.Resolve([]gorm.ConnPool{source, r.set.Replicas[0].Pool}) == gorm.ConnPool(source) {
			t.Fatal("a source's pool was taken although a replica is healthy")
		}
	}
}
