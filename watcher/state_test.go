package watcher

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func TestStandbyOfTheClusterIsProven(t *testing.T) {
	c := newCluster(t, quiet)
	n, _ := c.standby(900)
	wantState(t, n, true, true, "")
	st := n.State()
	if st.Position != at(1, 900) || st.High != st.Position || st.At != st.Received || st.Failed {
		t.Errorf("have %+v", st)
	}
	if have, want := c.group.Key(), (token.Key{System: fakepg.System}); have != want || !c.group.Known() {
		t.Errorf("key: have %s, want %s", have, want)
	}
}

func TestClusterNameIsPartOfTheKey(t *testing.T) {
	cfg := quiet
	cfg.Name = "orders"
	c := newCluster(t, cfg)
	want := token.Key{Name: token.NameHash("orders")}
	if have := c.group.Key(); have != want || c.group.Known() {
		t.Errorf("before the first answer: have %s, want %s", have, want)
	}
	c.sample(c.group.Primary)
	want.System = fakepg.System
	if have := c.group.Key(); have != want {
		t.Errorf("after it: have %s, want %s", have, want)
	}
}

func TestNothingIsKnownBeforeTheFirstAnswer(t *testing.T) {
	c := newCluster(t, quiet)
	wantState(t, c.group.Primary, false, false, "not asked yet")
}

// Replicas may answer first, as when the primary is down at start.
func TestReplicasAreJudgedAgainWhenThePrimaryBecomesKnown(t *testing.T) {
	c := newCluster(t, quiet)
	c.primary.Refuse(true)
	good, server := c.add(fakepg.StandbyAt(2, 900))
	clone := fakepg.StandbyAt(3, 900)
	clone.System++
	wrong, wrongServer := c.add(clone)
	c.settle(good, server)
	c.settle(wrong, wrongServer)
	wantState(t, good, true, false, "the primary is not known yet")
	wantState(t, wrong, true, false, "the primary is not known yet")
	before := server.Queries()
	c.primary.Refuse(false)
	c.recovered(c.group.Primary)
	wantState(t, good, true, true, "")
	wantState(t, wrong, false, false, fmt.Sprintf("is of another cluster: system identifier %d, want %d", uint64(fakepg.System+1), uint64(fakepg.System)))
	if have := server.Queries(); have != before {
		t.Errorf("queries of the replica for that: have %d, want none", have-before)
	}
}

func TestServerOfAnotherClusterServesNothing(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	reason := fmt.Sprintf("is of another cluster: system identifier 5, want %d", uint64(fakepg.System))
	s.Set(func(st *fakepg.State) { st.System, st.LSN = 5, 90000 })
	c.sample(n)
	wantState(t, n, false, false, reason)
	if have := n.State().High; have != at(1, 900) {
		t.Errorf("high-water mark: have %s, want 1:0/384 as before", have)
	}
	// Nor while the primary is down: it was known before.
	c.primary.Refuse(true)
	c.primary.Drop()
	c.fails(c.group.Primary)
	c.sample(n)
	wantState(t, n, false, false, reason)
}

func TestReplicaThatIsNoStandbyServesNothing(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Standby, st.LSN, st.Timeline = false, 5000, 2 })
	c.sample(n)
	wantState(t, n, false, false, "is not a standby")
	if have := n.State().High; have != at(1, 900) {
		t.Errorf("high-water mark: have %s, want 1:0/384: it is no position of this cluster's replica", have)
	}
}

func TestStandbyInPlaceOfThePrimary(t *testing.T) {
	c := newCluster(t, quiet)
	c.primary.Set(func(st *fakepg.State) { st.Standby = true })
	if err := c.fails(c.group.Primary); !errors.Is(err, ErrWrongRole) {
		t.Errorf("have %v, want ErrWrongRole", err)
	}
	wantState(t, c.group.Primary, false, false, "is a standby, not the primary")
	if c.group.Known() {
		t.Error("the cluster became known by a standby in the primary's place")
	}
	c.primary.Set(func(st *fakepg.State) { st.Standby = false })
	c.sample(c.group.Primary) // promoted
	wantState(t, c.group.Primary, true, true, "")
}

// A crashed standby opens for reads before it has replayed its local WAL again.
func TestPositionThatWentBackProvesNothingUntilItIsBack(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Crash(func(st *fakepg.State) { st.LSN = 500 })
	c.fails(n)
	c.recovered(n)
	wantState(t, n, false, false, "position went back to 1:0/1F4 after a restart, was 1:0/384")
	s.Set(func(st *fakepg.State) { st.LSN = 899 })
	c.sample(n)
	wantState(t, n, false, false, "position went back to 1:0/383 after a restart, was 1:0/384")
	s.Set(func(st *fakepg.State) { st.LSN = 900 })
	c.sample(n)
	wantState(t, n, true, true, "")
}

func TestLaterTimelineIsNotBack(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Timeline, st.LSN = 2, 700 }) // rewound
	c.promote(2, 800)
	c.sample(n)
	wantState(t, n, true, true, "")
}

// A standby's own timeline lags: it says 1 for a while after it has gone on to 2,
// and a write that was lost at the end of 1 would look replayed.
func TestTimelineIsProvenOnlyByThePrimarys(t *testing.T) {
	const reason = "timeline is not proven: have 1, the primary's is 2"
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	c.promote(2, 1000)
	wantState(t, n, true, false, reason) // at once
	c.sample(n)
	wantState(t, n, true, false, reason)
	s.Set(func(st *fakepg.State) { st.Timeline = 2 })
	c.sample(n)
	wantState(t, n, true, true, "")
	// A replica that is ahead of what is known of the primary is not proven either.
	s.Set(func(st *fakepg.State) { st.Timeline = 3 })
	c.sample(n)
	wantState(t, n, true, false, "timeline is not proven: have 3, the primary's is 2")
}

// While the primary is down, a promotion may be under way: what a replica proved
// before still holds, what it says from then on is not proven.
func TestReplicasKeepWhatTheyProvedWhileThePrimaryIsDown(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	later, laterServer := c.standby(950)
	before := n.State()
	laterServer.Crash(nil)
	c.primary.Refuse(true)
	c.primary.Drop()
	c.fails(c.group.Primary)
	s.Advance(50)
	if got := c.sample(n); got.Position != at(1, 950) {
		t.Errorf("sample: have %s, want 1:0/3B6 as the server says", got.Position)
	}
	st := n.State()
	if !st.Healthy || !st.Proven || st.Sample != before.Sample || st.High != before.High {
		t.Errorf("state: have %+v, want what was known before", st)
	}
	if st.At <= before.At {
		t.Error("state does not say that the server was asked")
	}
	c.fails(later)
	c.recovered(later) // another life, which has proved nothing
	wantState(t, later, true, false, primaryGone)
	s.Set(func(st *fakepg.State) { st.Resets++ }) // another one to all appearances
	c.sample(n)
	wantState(t, n, true, false, primaryGone)
	c.primary.Refuse(false)
	c.recovered(c.group.Primary)
	wantState(t, later, true, true, "")
	c.sample(n)
	if have := n.State().Position; have != at(1, 950) {
		t.Errorf("primary back: have %s, want 1:0/3B6", have)
	}
}

func TestReplicasAreJudgedAgainWhenThePrimaryIsOneAgain(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	standby := c.sample(c.group.Primary)
	standby.Standby = true
	c.group.Primary.publish(standby)
	s.Crash(nil)
	c.fails(n)
	c.recovered(n)
	wantState(t, n, true, false, primaryGone)
	c.sample(c.group.Primary)
	wantState(t, n, true, true, "")
}

// A standby's own word of its timeline comes late; what it receives tells at once.
func TestTimelineThatAStandbyReceives(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Received = 1 })
	c.sample(n)
	wantState(t, n, true, true, "")

	s.Set(func(st *fakepg.State) { st.Received, st.LSN = 2, 950 }) // of a server promoted elsewhere
	c.sample(n)
	wantState(t, n, true, false, "timeline is not proven: have 2, the primary's is 1")
	s.Set(func(st *fakepg.State) { st.Received, st.LSN = 0, 960 }) // which is gone again
	c.sample(n)
	wantState(t, n, true, false, "timeline is not proven: have 2, the primary's is 1")

	s.Crash(nil) // and its own word is that of before
	c.fails(n)
	c.recovered(n)
	wantState(t, n, true, false, "timeline is not proven: have 1, was 2 before a restart")

	s.Set(func(st *fakepg.State) { st.Received = 2 })
	c.sample(n)
	c.promote(2, 1000)
	wantState(t, n, true, true, "")
}

// Without its receiver nobody knows on which timeline it goes on.
func TestStandbyThatDoesNotReceiveAnyMoreKeepsWhatItProved(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Received = 1 })
	c.sample(n)
	before := n.State()
	s.Set(func(st *fakepg.State) { st.Received, st.LSN = 0, 950 })
	taken := c.sample(n)
	if st := n.State(); !st.Proven || st.Sample != before.Sample {
		t.Errorf("have %+v, want what was known before", st)
	}
	if n.State().Vouches(taken) {
		t.Error("vouches for what it replays without a receiver")
	}
	s.Set(func(st *fakepg.State) { st.Received = 1 })
	if taken = c.sample(n); n.State().Position != at(1, 950) || !n.State().Vouches(taken) {
		t.Errorf("receives again: have %s", n.State().Position)
	}
	// One that never told is believed its own word: the role may not see it, or WAL
	// comes from an archive.
	other, _ := c.standby(900)
	wantState(t, other, true, true, "")
}

func TestReplicaAheadOfThePrimaryIsOnAnotherHistory(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	s.Set(func(st *fakepg.State) { st.LSN = 2000 })
	c.sample(n)
	wantState(t, n, true, true, "") // it may have replayed what came since
	c.sample(c.group.Primary)       // which was at 1000 then
	wantState(t, n, false, false, divergedReason)
	for _, lsn := range []uint64{2000, 3000} {
		c.primary.Set(func(st *fakepg.State) { st.LSN = 4000 }) // past it by now
		s.Set(func(st *fakepg.State) { st.LSN = lsn })
		c.sample(c.group.Primary)
		c.sample(n)
		wantState(t, n, false, false, divergedReason)
	}
	// Nor is it forgotten when the watcher's connection breaks.
	s.Drop()
	c.fails(n)
	c.recovered(n)
	wantState(t, n, false, false, divergedReason)
	// A new life may have been made from a backup of the primary.
	s.Crash(func(st *fakepg.State) { st.LSN = 3500 })
	c.fails(n)
	c.recovered(n)
	wantState(t, n, true, true, "")
}

func TestReplicaMayBeAheadOfAnOlderAnswerOfThePrimary(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	hold := c.primary.Hold()
	b := c.join(c.group.Primary)
	hold.Arrived() // position 1000
	c.primary.Advance(500)
	s.Advance(500)
	c.sample(n)
	hold.Release()
	if _, err := c.finished(b); err != nil {
		t.Fatal(err)
	}
	wantState(t, n, true, true, "")
	c.sample(c.group.Primary)
	wantState(t, n, true, true, "")
}

func TestTimelinesAreNotComparedByPosition(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.LSN = 2000 })
	c.sample(n)
	c.promote(2, 1000)
	wantState(t, n, true, false, "timeline is not proven: have 1, the primary's is 2")
}

func TestPooledReplicaServesNoTokenReads(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Pooled = true })
	c.sample(n)
	wantState(t, n, true, false, pooledReason)
}

func TestUntrustedPoolServesNoTokenReads(t *testing.T) {
	c := newCluster(t, quiet)
	s := fakepg.New(t, fakepg.StandbyAt(2, 900))
	t.Cleanup(c.group.Close)
	n := c.group.Add("r", s.Dial, "because")
	c.sample(c.group.Primary)
	c.sample(n)
	wantState(t, n, true, false, "because")
}

// Of two queries under way at the same time the older answer may come last.
func TestOlderAnswerDoesNotReplaceANewerOne(t *testing.T) {
	c := newCluster(t, quiet)
	c.settle(c.group.Primary, c.primary)
	hold := c.primary.Hold()
	older := c.join(c.group.Primary)
	hold.Arrived()
	c.primary.Advance(500)
	older2 := c.join(c.group.Primary)
	hold.Arrived()
	// Which of the two goes on first is not known; in the end the newer holds.
	hold.Release()
	first, err := c.finished(older)
	second, err2 := c.finished(older2)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if first.Position != at(1, 1000) || second.Position != at(1, 1500) {
		t.Fatalf("have %s and %s", first.Position, second.Position)
	}
	c.group.Primary.Publish(first)
	if have := c.group.Primary.State(); have.Sample != second {
		t.Errorf("state: have %s, want the newer answer %s", have.Position, second.Position)
	}
}

func TestPublishTakesOnlyTheSameLife(t *testing.T) {
	c := newCluster(t, quiet)
	c.settle(c.group.Primary, c.primary)
	s := c.group.Primary.State().Sample
	s.Begun++
	s.Position.LSN = 5000
	other, pooled := s, s
	other.Incarnation++
	pooled.Pooled = true
	for name, s := range map[string]Sample{"other incarnation": other, "pooled": pooled} {
		if c.group.Primary.Publish(s); c.group.Primary.State().Position != at(1, 1000) {
			t.Errorf("%s: sample was taken up", name)
		}
	}
	if c.group.Primary.Publish(s); c.group.Primary.State().Position != at(1, 5000) {
		t.Error("same life: sample was not taken up")
	}
	c.primary.Refuse(true)
	c.primary.Drop()
	c.fails(c.group.Primary)
	s.Begun++
	if c.group.Primary.Publish(s); !c.group.Primary.State().Failed {
		t.Error("sample taken up after the node's own connection died")
	}
}

func TestPausedReplay(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(900)
	s.Set(func(st *fakepg.State) { st.Paused = true })
	c.sample(n)
	if st := n.State(); !st.Paused || !st.Proven {
		t.Errorf("have paused %v, proven %v, want both", st.Paused, st.Proven)
	}
}

func TestRename(t *testing.T) {
	c := newCluster(t, quiet)
	n := c.group.Primary
	if n.Rename("10.0.0.1:5432"); n.Name() != "10.0.0.1:5432" || n.Group() != c.group {
		t.Errorf("have %q", n.Name())
	}
}
