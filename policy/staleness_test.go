package policy

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/session"
)

func TestMaxStaleness(t *testing.T) {
	r := newRig(t, Settings{}, 900, 1000)
	q := &Request{Set: r.set, Level: StaleOK, MaxStaleness: time.Hour}
	before := r.queries()
	d := r.decide(q)
	r.want(d, 1, CaughtUp) // the primary was at 1000 within the last hour
	if d.Want != at(1, 1000) || r.queries()[0] != before[0] {
		t.Errorf("have want %s after %d queries", d.Want, r.queries()[0]-before[0])
	}
	r.primary.Advance(500)
	q.Reset()
	q.Set, q.Level, q.MaxStaleness = r.set, StaleOK, time.Nanosecond
	d = r.decide(q)
	r.want(d, -1, Behind)
	if d.Want != at(1, 1500) || d.Have != at(1, 1000) || d.Gap() != 500 {
		t.Errorf("have want %s, have %s", d.Want, d.Have)
	}
}

// A bound holds for reads that also have something to see.
func TestMaxStalenessBesideAToken(t *testing.T) {
	r := newRig(t, Settings{}, 950, 1000)
	q := r.read(wrote(900))
	q.MaxStaleness = time.Hour
	d := r.decide(q)
	r.want(d, 1, CaughtUp)
	if d.Want != at(1, 1000) {
		t.Errorf("want: have %s, want what the bound comes to", d.Want)
	}
	// Marks are resolved beside it.
	s := session.New()
	s.MarkSawPrimary(key)
	q = r.read(s)
	q.MaxStaleness = time.Hour
	r.want(r.decide(q), 1, CaughtUp)
	// So are reads.
	read := newRig(t, Settings{}, 900, 950, 1000)
	s = session.New()
	s.ReadNode(key, read.node(0).State().Incarnation, later())
	q = read.read(s)
	q.MaxStaleness = time.Hour
	read.want(read.decide(q), 2, CaughtUp)
	// The token may ask for more than the bound.
	r.primary.Advance(500)
	r.ask(r.group.Primary)
	r.move(0, 1500)
	q = r.read(wrote(1400))
	q.MaxStaleness = time.Hour
	r.want(r.decide(q), 0, CaughtUp)
	// Without anything to see the bound is all.
	q = r.read(session.New())
	q.MaxStaleness = time.Nanosecond
	r.want(r.decide(q), 0, CaughtUp)
	r.kill(r.primary, r.group.Primary)
	q = r.read(wrote(900))
	q.MaxStaleness = time.Nanosecond
	r.want(r.decide(q), -1, NoneHealthy)
}

// The primary's first answer may be the one that the bound waits for.
func TestMaxStalenessBeforeThePrimaryIsKnown(t *testing.T) {
	primary := fakepg.PrimaryAt(1000)
	primary.Version = "9.6"
	r := newRigOf(t, Settings{}, primary, fakepg.StandbyAt(2, 1000))
	r.primary.Set(func(st *fakepg.State) { st.Version = "" })
	for r.group.Primary.State().Failed {
		d := r.decide(&Request{Set: r.set, Level: StaleOK, MaxStaleness: time.Hour})
		if d.Reason != NoneHealthy {
			r.want(d, 0, CaughtUp)
		}
	}
}
