package policy

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/watcher"
)

func isLabel(s string) bool { return regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(s) }

func TestLevelsHaveLabels(t *testing.T) {
	seen := map[string]bool{}
	for l := range levels {
		if have := l.Label(); !isLabel(have) || seen[have] {
			t.Errorf("%s: have label %q", l, have)
		}
		seen[l.Label()] = true
	}
}

// What was counted of one cluster is told of that one, at the node that served.
func TestCounted(t *testing.T) {
	r := NewRouter(Settings{})
	g, other := watcher.NewGroup(watcher.Config{}, "g", nil), watcher.NewGroup(watcher.Config{}, "other", nil)
	rep := &Replica{Pool: noPool(t)}
	r.Pools.AddSet(g, []*Replica{rep})
	for _, d := range []Decision{
		{Level: ReadYourWrites, Reason: Behind, Judged: true, Waited: 10 * time.Millisecond},
		{Level: ReadYourWrites, Reason: Behind, Judged: true, Waited: 2 * time.Second},
		{Level: ReadYourWrites, Reason: InWrite},
		{Level: StaleOK, Reason: NoneHealthy},
		{Level: ReadYourWrites, Reason: CaughtUp, Judged: true, Replica: rep},
		{Level: ReadYourWrites, Reason: Awaited, Judged: true, Replica: rep, Waited: 600 * time.Microsecond},
		{Level: Strong, Reason: ByStrong, Lost: true},
	} {
		r.Counted(g, &d)
	}
	r.Counted(other, &Decision{Level: Strong, Reason: ByStrong})

	st := r.Stats(g)
	if st.TokenReads != 4 || st.Fallbacks[Behind] != 2 || st.Fallbacks[NoneHealthy] != 0 || st.PossiblyLost != 1 {
		t.Errorf("have %+v", st)
	}
	if _, ok := st.Fallbacks[InWrite]; ok {
		t.Error("a write under way is a fallback")
	}
	last := len(WaitBounds)
	if st.InVain.Counts[4] != 1 || st.InVain.Counts[last] != 1 || st.InVain.Sum != 2010*time.Millisecond {
		t.Errorf("in vain: have %+v", st.InVain)
	}
	if st.Awaited.Counts[1] != 1 || st.Awaited.Sum != 600*time.Microsecond {
		t.Errorf("awaited: have %+v", st.Awaited)
	}
	want := []ReadCount{{StaleOK, NoneHealthy, 1}, {ReadYourWrites, InWrite, 1}, {ReadYourWrites, Behind, 2}, {Strong, ByStrong, 1}}
	if !equalCounts(st.Reads, want) {
		t.Errorf("primary: have %+v, want %+v", st.Reads, want)
	}
	if want := []ReadCount{{ReadYourWrites, CaughtUp, 1}, {ReadYourWrites, Awaited, 1}}; !equalCounts(rep.Reads(), want) {
		t.Errorf("replica: have %+v, want %+v", rep.Reads(), want)
	}
	if st := r.Stats(other); st.TokenReads != 0 || !equalCounts(st.Reads, []ReadCount{{Strong, ByStrong, 1}}) {
		t.Errorf("other cluster: have %+v", st)
	}
	if r.Count(ByStrong) != 2 || r.Count(CaughtUp) != 1 || r.Count(Behind) != 2 || r.Count(Checked) != 0 {
		t.Errorf("in all: have %d, %d, %d", r.Count(ByStrong), r.Count(CaughtUp), r.Count(Behind))
	}
}

func equalCounts(a, b []ReadCount) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Clusters that become known at the same time lose no count.
func TestCountedConcurrently(t *testing.T) {
	r := NewRouter(Settings{})
	groups := []*watcher.Group{}
	for range 8 {
		groups = append(groups, watcher.NewGroup(watcher.Config{}, "g", nil))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 800 {
				r.Counted(groups[i%len(groups)], &Decision{Reason: ByStrong, Level: Strong})
			}
		}()
	}
	all.Wait()
	if have := r.Count(ByStrong); have != 3200 {
		t.Errorf("have %d, want 3200", have)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := NewRouter(Settings{})
	g := watcher.NewGroup(watcher.Config{}, "g", nil)
	d := Decision{Level: ReadYourWrites, Reason: Behind, Judged: true, Waited: time.Millisecond}
	if n := testing.AllocsPerRun(100, func() { r.Counted(g, &d) }); n != 0 {
		t.Errorf("have %v allocations", n)
	}
}

func BenchmarkCounted(b *testing.B) {
	r := NewRouter(Settings{})
	g := watcher.NewGroup(watcher.Config{}, "g", nil)
	rep := &Replica{}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		d := Decision{Level: ReadYourWrites, Reason: CaughtUp, Judged: true, Replica: rep}
		for pb.Next() {
			r.Counted(g, &d)
		}
	})
}
