package policy

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// positionless is a rig of standbys whose positions nobody can rely on.
func positionless(t *testing.T, s Settings, n int) *rig {
	t.Helper()
	standbys := make([]fakepg.State, n)
	for i := range standbys {
		standbys[i] = fakepg.StandbyAt(2+i, 10)
	}
	return newRigWithout(t, "its pool is not ours", s, fakepg.PrimaryAt(1000), standbys...)
}

func TestWindowAloneDecidesWithoutPositions(t *testing.T) {
	r := positionless(t, Settings{Window: time.Minute}, 2)
	d := r.decide(r.read(wroteAgo(900, 61*time.Second)))
	if d.Replica == nil || d.Reason != AfterWindow || d.Stale {
		t.Errorf("after the window: have %s, stale %v", r.show(d), d.Stale)
	}
	r.want(r.decide(r.read(wroteAgo(900, 50*time.Second))), -1, InWindow)

	marked := session.New()
	marked.MarkWrote(key)
	r.want(r.decide(r.read(marked)), -1, InWindow)

	r.want(r.decide(r.read(wrote(900))), -1, NoneProven) // nobody knows when

	open := wroteAgo(900, time.Hour)
	open.BeginWrite()
	r.want(r.decide(r.read(open)), -1, InWrite)
}

// Without a window such servers serve no token reads at all.
func TestNoWindowWithoutPositions(t *testing.T) {
	r := positionless(t, Settings{}, 1)
	r.want(r.decide(r.read(wroteAgo(900, time.Hour))), -1, NoneProven)
}

// Where there are positions, the window is asked for beside them.
func TestWindowAndPosition(t *testing.T) {
	r := newRig(t, Settings{Window: time.Minute}, 1000)
	r.want(r.decide(r.read(wroteAgo(900, time.Second))), -1, InWindow)
	r.want(r.decide(r.read(wroteAgo(900, time.Hour))), 0, CaughtUp)
	r.want(r.decide(r.read(wroteAgo(1001, time.Hour))), -1, Behind)
	r.want(r.decide(r.read(wrote(900))), 0, CaughtUp) // a bare write has no date
	r.want(r.decide(r.read(session.New())), 0, Anywhere)
}

// A node that once had a position of its own is waited for: the window does not take
// over because it is down, nor before it was asked.
func TestWindowDoesNotTakeOverFromPositions(t *testing.T) {
	r := newRig(t, Settings{Window: time.Minute}, 1000, 1000)
	r.servers[1].Set(func(st *fakepg.State) { st.Pooled = true })
	r.ask(r.node(1))
	r.kill(r.servers[0], r.node(0))
	d := r.decide(r.read(wroteAgo(900, time.Hour)))
	r.want(d, -1, NoneProven)
}

func TestWindowOfAPoolerFromTheStart(t *testing.T) {
	pooled := fakepg.StandbyAt(2, 10)
	pooled.Pooled = true
	r := newRigOf(t, Settings{Window: time.Minute}, fakepg.PrimaryAt(1000), pooled)
	r.want(r.decide(r.read(wroteAgo(900, time.Hour))), 0, AfterWindow)
}

// Tokens merge to the later window; reading does not lengthen it, nor does being
// received again, nor having a mark resolved.
func TestWindowIsThatOfTheLastWrite(t *testing.T) {
	s := wroteAgo(900, 55*time.Second)
	began := func() time.Time {
		var n session.Need
		s.Need(&n, key, time.Time{})
		return n.Written
	}
	first := began()
	s.Observe(wroteAgo(800, 57*time.Second).Token())
	s.Observe(s.Token())
	s.Advance(key, at(1, 950), later(), false)
	s.MarkSawPrimary(key)
	s.ReadNode(key, 7, later())
	s.Observe(s.Token())
	s.SettleRead(key, 7, at(1, 960), later())
	s.ReadNode(key, 8, later())
	s.LoseNode(key, 8)
	s.ReadNode(key, 0, later())
	s = session.New(s.Token())
	if !began().Equal(first) {
		t.Errorf("have %s, want %s", began(), first)
	}
	s.Observe(wroteAgo(800, 50*time.Second).Token())
	if !began().After(first) {
		t.Error("a later write does not count")
	}
	s.Advance(key, at(1, 990), later(), true)
	if time.Since(began()) > 10*time.Second {
		t.Error("a write now does not count")
	}
}

func TestWindowOfAResolvedMark(t *testing.T) {
	date := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	s := session.New(token.FromEntries(token.Entry{Key: key, Wrote: true, Minted: date}))
	s.Advance(key, at(1, 900), later(), false)
	e, _ := s.Token().Entry(key)
	if e.Wrote || e.Write != at(1, 900) || !e.Minted.Equal(date) {
		t.Errorf("have %+v, want the date of the write, %s", e, date)
	}
}
