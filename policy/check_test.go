package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// checking is a rig whose replicas' drivers can check reads.
func checking(t *testing.T, s Settings, positions ...uint64) *rig {
	t.Helper()
	r := newRig(t, s, positions...)
	for _, rep := range r.set.Replicas {
		rep.Checks = true
	}
	return r
}

// sampleOf is what a read of a replica would bring along at a position.
func (r *rig) sampleOf(i int, lsn token.LSN) watcher.Sample {
	s := r.node(i).State().Sample
	s.Position.LSN = lsn
	s.Begun, s.Received = later(), later()
	return s
}

func TestCheckedReadIsTriedInsteadOfWaiting(t *testing.T) {
	r := checking(t, Settings{Wait: patience}, 899)
	d := r.decide(r.read(wrote(900)))
	r.want(d, 0, Checked)
	if d.Have != at(1, 899) || d.Want != at(1, 900) || d.Waited != 0 {
		t.Errorf("have %+v", d)
	}
	// What has caught up needs no check.
	r.want(r.decide(r.read(wrote(899))), 0, CaughtUp)
}

// A read that found its replica behind waits, is tried once more when the replica may
// have come on, and then leaves the looking to the watcher.
func TestCheckedReadIsTriedTwiceAtMost(t *testing.T) {
	const budget = 20 * time.Millisecond
	r := checking(t, Settings{Wait: budget}, 899)
	q := r.read(wrote(900))
	r.want(r.decide(q), 0, Checked)
	q.Checks++
	_ = q.Accept(r.set.Replicas[0], r.sampleOf(0, 899)) // which is why
	d := r.decide(q)
	r.want(d, 0, Checked)
	if d.Waited < lookAgain {
		t.Errorf("tried again after %s, want %s", d.Waited, lookAgain)
	}
	q.Checks++
	before := r.servers[0].Queries()
	d = r.decide(q)
	r.want(d, -1, Behind)
	if d.Waited < budget/2 || d.Have != at(1, 899) {
		t.Errorf("have %+v", d)
	}
	if r.servers[0].Queries() == before {
		t.Error("nobody looked")
	}
}

func TestCheckedReadIsNotWastedOnWhatCannotCover(t *testing.T) {
	for name, prepare := range map[string]func(*rig, *Request){
		"paused": func(r *rig, _ *Request) {
			r.servers[0].Set(func(st *fakepg.State) { st.Paused = true })
			r.ask(r.node(0))
		},
		"pooled": func(r *rig, _ *Request) {
			r.servers[0].Set(func(st *fakepg.State) { st.Pooled = true })
			r.ask(r.node(0))
		},
		"another timeline": func(_ *rig, q *Request) {
			q.Sessions[0] = session.New(token.FromEntries(token.Entry{Key: key, Write: at(2, 10)}))
		},
		"failed before": func(r *rig, q *Request) { q.Exclude = r.set.Replicas[0] },
		"no such driver": func(r *rig, _ *Request) {
			r.set.Replicas[0].Checks = false
		},
	} {
		r := checking(t, Settings{}, 899)
		q := r.read(wrote(900))
		prepare(r, q)
		if d := r.decide(q); d.Replica != nil {
			t.Errorf("%s: have %s, want the primary", name, r.show(d))
		}
	}
}

func TestAccept(t *testing.T) {
	r := checking(t, Settings{}, 899)
	rep := r.set.Replicas[0]
	q := r.read(wrote(900))
	r.want(r.decide(q), 0, Checked)
	if err := q.Accept(rep, r.sampleOf(0, 899)); err == nil || !strings.Contains(err.Error(), "at 1:0/383, want 1:0/384") {
		t.Errorf("one byte short: have %v", err)
	}
	for name, change := range map[string]func(*watcher.Sample){
		"another life":     func(s *watcher.Sample) { s.Incarnation++ },
		"another cluster":  func(s *watcher.Sample) { s.System++ },
		"another timeline": func(s *watcher.Sample) { s.Position.Timeline++ },
	} {
		s := r.sampleOf(0, 950)
		change(&s)
		if err := q.Accept(rep, s); err == nil {
			t.Errorf("%s: accepted", name)
		}
		r.move(0, 899) // what was taken up is of no use here
	}
	r = checking(t, Settings{}, 899)
	q = r.read(wrote(900))
	r.want(r.decide(q), 0, Checked)
	if err := q.Accept(r.set.Replicas[0], r.sampleOf(0, 900)); err != nil {
		t.Errorf("covered: have %v", err)
	}
	// It is known to all from now on.
	r.want(r.decide(r.read(wrote(900))), 0, CaughtUp)
}

// A promotion may be under way while the primary is down: a replica's word on its
// timeline is no proof then, wherever it comes from.
func TestNothingNewIsAcceptedWhileThePrimaryIsDown(t *testing.T) {
	r := checking(t, Settings{}, 899)
	q := r.read(wrote(900))
	r.want(r.decide(q), 0, Checked)
	r.kill(r.primary, r.group.Primary)
	if err := q.Accept(r.set.Replicas[0], r.sampleOf(0, 950)); err == nil {
		t.Error("accepted")
	}
	r.want(r.decide(r.read(wrote(899))), 0, CaughtUp) // as before
}
