package policy

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func TestDecisionSaysWhatWasReliedOn(t *testing.T) {
	r := newRig(t, Settings{}, 950)
	d := r.decide(r.read(wrote(900)))
	st := r.node(0).State()
	if d.Want != at(1, 900) || d.Have != at(1, 950) || d.Incarnation != st.Incarnation || d.Age <= 0 || d.Waited != 0 || d.Gap() != 0 {
		t.Errorf("have %+v", d)
	}
	if have := r.queries(); have[0] != 1 || have[1] != 1 {
		t.Errorf("queries for it: have %v, want none beyond the first of each", have)
	}
}

func TestGap(t *testing.T) {
	for name, tc := range map[string]struct {
		d    Decision
		want uint64
	}{
		"short":              {Decision{Want: at(1, 900), Have: at(1, 850)}, 50},
		"bare and short":     {Decision{Want: at(0, 900), Have: at(1, 850)}, 50},
		"covered":            {Decision{Want: at(1, 900), Have: at(1, 950)}, 0},
		"nothing wanted":     {Decision{Have: at(1, 950)}, 0},
		"nothing relied on":  {Decision{Want: at(1, 900)}, 0},
		"bare, and nothing":  {Decision{Want: at(0, 900)}, 0},
		"on other timelines": {Decision{Want: at(2, 900), Have: at(1, 850)}, 0},
	} {
		if have := tc.d.Gap(); have != tc.want {
			t.Errorf("%s: have %d, want %d", name, have, tc.want)
		}
	}
}

// A mark costs one query of the primary, whoever else asks, and becomes a floor.
func TestMarkIsResolvedByOneQuery(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	a, b := session.New(), session.New()
	a.MarkWrote(key)
	b.MarkSawPrimary(key)
	before := r.queries()
	q := &Request{Set: r.set, Level: ReadYourWrites, Sessions: []*session.Session{a, b}}
	d := r.decide(q)
	r.want(d, 0, CaughtUp)
	if d.Want != at(1, 1000) {
		t.Errorf("want: have %s, want the primary's position", d.Want)
	}
	r.want(r.decide(q), 0, CaughtUp)
	if have := r.queries(); have[0] != before[0]+1 || have[1] != before[1] {
		t.Errorf("queries: have %v after %v, want one of the primary", have, before)
	}
	e, _ := a.Token().Entry(key)
	if e.Write != at(1, 1000) || e.Marked() {
		t.Errorf("session that wrote: have %+v", e)
	}
	if e, _ = b.Token().Entry(key); e.Floor != at(1, 1000) || e.Marked() {
		t.Errorf("session that read: have %+v", e)
	}
}

// The primary is asked again after the mark: what was known of it before may lack
// the write.
func TestMarkIsNotResolvedByWhatIsKnown(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New()
	s.MarkWrote(key)
	r.primary.Advance(500)
	d := r.decide(r.read(s))
	r.want(d, -1, Behind)
	if d.Want != at(1, 1500) {
		t.Errorf("want: have %s, want the position of now", d.Want)
	}
}

// Several readers with marks share the next query.
func TestMarksShareAQuery(t *testing.T) {
	const readers = 20
	r := newRig(t, Settings{}, 1000)
	// Both lanes are busy, so that all of them wait for the next query.
	hold := r.primary.Hold()
	results := make(chan Decision, readers+2)
	reader := func() {
		s := session.New()
		s.MarkWrote(key)
		results <- r.decide(r.read(s))
	}
	go reader()
	hold.Arrived()
	go reader()
	hold.Arrived()
	_, before := r.group.Primary.Counters()
	for range readers {
		go reader()
	}
	r.joined(before + readers)
	queries := r.primary.Queries()
	hold.Release()
	for range readers + 2 {
		r.want(<-results, 0, CaughtUp)
	}
	if have := r.primary.Queries() - queries; have != 1 {
		t.Errorf("queries for %d readers: have %d, want 1", readers, have)
	}
}

// joined waits until the primary was asked as often; nothing tells of that.
func (r *rig) joined(want int64) {
	r.t.Helper()
	limit := time.Now().Add(patience)
	for {
		if _, calls := r.group.Primary.Counters(); calls >= want {
			return
		}
		if time.Now().After(limit) {
			r.t.Fatal("readers did not ask")
		}
	}
}

// Where no replica could be that far, the mark is left to the read itself.
func TestMarkIsNotAskedForInVain(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	r.kill(r.servers[0], r.node(0))
	s := session.New()
	s.MarkWrote(key)
	before := r.primary.Queries()
	r.want(r.decide(r.read(s)), -1, MarkUnresolved)
	if have := r.primary.Queries() - before; have != 0 {
		t.Errorf("queries: have %d, want none", have)
	}
}

func TestMarkIsNotAskedForWhereTheOnlyReplicaFailed(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New()
	s.MarkWrote(key)
	q := r.read(s)
	q.Exclude = r.set.Replicas[0]
	before := r.primary.Queries()
	r.want(r.decide(q), -1, MarkUnresolved)
	if have := r.primary.Queries() - before; have != 0 {
		t.Errorf("queries: have %d, want none", have)
	}
}

// A write of the same session that returns while the primary is being asked.
func TestMarkThatIsSetMeanwhileIsNotResolved(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New()
	s.MarkWrote(key)
	hold := r.primary.Hold()
	result := r.async(t.Context(), r.read(s))
	hold.Arrived()
	s.MarkWrote(key)
	hold.Release()
	r.want(<-result, -1, MarkUnresolved)
	r.want(r.decide(r.read(s)), 0, CaughtUp) // asked again
}

// A failover to another cluster between the decision's beginning and its answer.
func TestMarkIsNotResolvedByAnotherCluster(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New()
	s.MarkWrote(key)
	q := r.read(s)
	q.key = key
	r.primary.Set(func(st *fakepg.State) { st.System++; st.LSN = 10 })
	r.primary.Drop()
	for r.group.Primary.State().System != fakepg.System+1 {
		if r.router.resolveMarks(t.Context(), q) {
			t.Fatal("resolved")
		}
	}
	if e, _ := s.Token().Entry(key); !e.Wrote || !e.Write.IsZero() {
		t.Errorf("session: have %+v, want the mark as it was", e)
	}
}

func TestStateOfAnotherClusterIsNotRelied(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	q := r.read(wrote(900))
	r.want(r.decide(q), 0, CaughtUp)
	q.key.System++ // as it was read just before the replicas were judged anew
	if q.covered(r.node(0).State()) {
		t.Error("relied on")
	}
}

func TestBareLSNCountsOnThePrimarysTimeline(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	bare := r.read(session.New(token.FromLSN(900)))
	r.want(r.decide(bare), 0, CaughtUp)
	// Both a position and a bare LSN.
	both := session.New(token.FromLSN(990))
	both.Advance(key, at(1, 500), later(), true)
	r.want(r.decide(r.read(both)), 0, CaughtUp)
	both.Observe(token.FromLSN(1001))
	d := r.decide(r.read(both))
	r.want(d, -1, Behind)
	if d.Want != at(1, 1001) || d.Have != at(1, 1000) || d.Gap() != 1 {
		t.Errorf("have want %s, have %s, gap %d", d.Want, d.Have, d.Gap())
	}
	// With the primary gone nobody knows which timeline that is.
	r.kill(r.primary, r.group.Primary)
	r.want(r.decide(bare), -1, Behind)
}

func TestNodeThatWasReadServesAgain(t *testing.T) {
	r := newRig(t, Settings{Balancer: first{}}, 950, 900)
	s := session.New()
	in := r.node(1).State().Incarnation
	s.ReadNode(key, in, later())
	before := r.queries()
	for range 3 {
		d := r.decide(r.read(s))
		r.want(d, 1, SameNode)
		if d.Have != at(1, 900) || d.Incarnation != in {
			t.Errorf("have %+v", d)
		}
	}
	if have := r.queries(); have[0] != before[0] || have[1] != before[1] || have[2] != before[2] {
		t.Errorf("queries: have %v, want none beyond %v", have, before)
	}
	// A later position of the node frees the choice.
	r.ask(r.node(1))
	r.want(r.decide(r.read(s)), 0, CaughtUp)
	if e, _ := s.Token().Entry(key); e.Floor != at(1, 900) {
		t.Errorf("floor: have %s, want 1:0/384", e.Floor)
	}
}

// The node that was read is taken only if it has what was written meanwhile.
func TestWriteFreesTheChoice(t *testing.T) {
	r := newRig(t, Settings{}, 950, 900)
	s := session.New()
	s.ReadNode(key, r.node(1).State().Incarnation, later())
	s.Observe(token.FromEntries(token.Entry{Key: key, Write: at(1, 940)}))
	before := r.servers[1].Queries()
	d := r.decide(r.read(s))
	r.want(d, 0, CaughtUp)
	if have := r.servers[1].Queries() - before; have != 1 {
		t.Errorf("queries of the node that was read: have %d, want 1, for its position", have)
	}
}

func TestTwoNodesThatWereReadAreAsked(t *testing.T) {
	r := newRig(t, Settings{}, 900, 950, 950)
	s := session.New()
	for _, i := range []int{0, 1} {
		s.ReadNode(key, r.node(i).State().Incarnation, later())
	}
	r.servers[1].Set(func(st *fakepg.State) { st.LSN = 960 })
	r.move(2, 955)
	d := r.decide(r.read(s))
	r.want(d, 1, CaughtUp) // which was read at up to 960
	if d.Want != at(1, 960) || len(s.Token().Entries()[0].SeenNodes) != 0 {
		t.Errorf("want %s, token %+v", d.Want, s.Token().Entries())
	}
}

// A node in another life has forgotten what it showed; the primary has it.
func TestNodeThatWasReadAndRestarted(t *testing.T) {
	r := newRig(t, Settings{}, 1000, 900)
	s := session.New()
	in := r.node(1).State().Incarnation
	s.ReadNode(key, in, later())
	r.servers[1].Crash(nil)
	for r.node(1).State().Incarnation == in || r.node(1).State().Failed {
		_, _ = r.node(1).Sample(t.Context()) // until it is back
	}
	before := r.primary.Queries()
	d := r.decide(r.read(s))
	r.want(d, 0, CaughtUp)
	if d.Want != at(1, 1000) || r.primary.Queries() != before+1 {
		t.Errorf("have want %s after %d queries of the primary", d.Want, r.primary.Queries()-before)
	}
}

// The node's position is of another life than the one that was read; its first
// query tells.
func TestPositionOfAnotherLifeSettlesNothing(t *testing.T) {
	r := newRig(t, Settings{}, 900, 900, 1000)
	s := session.New()
	for _, i := range []int{0, 1} {
		s.ReadNode(key, r.node(i).State().Incarnation, later())
	}
	r.servers[0].Set(func(st *fakepg.State) { st.Resets++ })
	d := r.decide(r.read(s))
	r.want(d, 2, CaughtUp)
	if d.Want != at(1, 1000) {
		t.Errorf("want: have %s, want the primary's position", d.Want)
	}
}

// A read of the same session that ends while a node is being asked.
func TestReadThatEndsMeanwhileIsNotSettled(t *testing.T) {
	r := newRig(t, Settings{}, 900, 900, 1000)
	s := session.New()
	for _, i := range []int{0, 1} {
		s.ReadNode(key, r.node(i).State().Incarnation, later())
	}
	hold := r.servers[0].Hold()
	result := r.async(t.Context(), r.read(s))
	hold.Arrived()
	s.ReadNode(key, r.node(2).State().Incarnation, later())
	hold.Release()
	r.want(<-result, -1, MarkUnresolved)
	r.want(r.decide(r.read(s)), 2, SameNode)
}

func TestNodeThatWasReadIsNotInTheSet(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New(token.FromEntries(token.Entry{Key: key, SeenNodes: []token.Incarnation{77}}))
	d := r.decide(r.read(s))
	r.want(d, 0, CaughtUp)
	if d.Want != at(1, 1000) {
		t.Errorf("want: have %s, want the primary's position", d.Want)
	}
}

func TestNodeThatWasReadIsGoneAndThePrimary(t *testing.T) {
	r := newRig(t, Settings{}, 1000)
	s := session.New(token.FromEntries(token.Entry{Key: key, SeenNodes: []token.Incarnation{77}}))
	r.kill(r.primary, r.group.Primary)
	r.want(r.decide(r.read(s)), -1, MarkUnresolved)
}

// The node that was read just failed: its position is asked for all the same, to
// let another serve.
func TestNodeThatWasReadFailed(t *testing.T) {
	r := newRig(t, Settings{}, 900, 950)
	s := session.New()
	s.ReadNode(key, r.node(0).State().Incarnation, later())
	q := r.read(s)
	q.Exclude = r.set.Replicas[0]
	r.want(r.decide(q), 1, CaughtUp)
}

// Nothing of one decision gets into the next.
func TestReset(t *testing.T) {
	r := newRig(t, Settings{}, 1000, 1000)
	q := r.read(wrote(900))
	q.MaxStaleness, q.Prefer, q.Exclude = time.Hour, r.set.Replicas[0], r.set.Replicas[1]
	r.want(r.decide(q), 0, CaughtUp)
	q.Prefer, q.Exclude = nil, nil
	if d := r.decide(q); d.Replica == nil || len(q.cands) != 2 {
		t.Fatalf("have %s of %d candidates", r.show(d), len(q.cands))
	}
	q.Reset()
	if q.Set != nil || q.Level != Unset || q.MaxStaleness != 0 || len(q.Sessions) != 0 || q.Sessions[:1][0] != nil || q.Prefer != nil || q.Exclude != nil ||
		!q.need.None() || !q.fresh.IsZero() || q.key != (token.Key{}) || len(q.cands) != 0 {
		t.Errorf("have %+v", q)
	}
	for _, c := range q.cands[:cap(q.cands)] {
		if c != nil {
			t.Error("a replica is kept")
		}
	}
}

func TestSettings(t *testing.T) {
	if s := NewRouter(Settings{Wait: 5}).Settings(); s.Wait != 5 || s.Balancer != LeastBusy() {
		t.Errorf("have %+v", s)
	}
}
