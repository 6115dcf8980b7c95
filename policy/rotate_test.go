package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// turning is a rig whose clock and lags are the test's.
type turning struct {
	*rig
	now  mono.Instant
	lags map[*Replica]time.Duration // -1: not known
}

func newTurning(t *testing.T, ro Rotation, n int) *turning {
	positions := make([]uint64, n)
	for i := range positions {
		positions[i] = 900
	}
	r := &turning{rig: newRig(t, Settings{Rotation: ro}, positions...), now: mono.Now(), lags: map[*Replica]time.Duration{}}
	r.router.rotating.lag = func(rep *Replica) (time.Duration, bool) { return max(0, r.lags[rep]), r.lags[rep] >= 0 }
	return r
}

// after lets time pass, with the lags that the replicas have by then, and returns
// what turned.
func (r *turning) after(d time.Duration, lags ...time.Duration) string {
	r.now = r.now.Add(d)
	for i, lag := range lags {
		r.lags[r.set.Replicas[i]] = lag
	}
	var said []string
	for _, t := range r.router.Rotate(r.now) {
		for i, rep := range r.set.Replicas {
			if rep != t.Replica {
				continue
			}
			what := "leaves"
			switch {
			case t.Stuck:
				what = "stuck"
			case t.Out > 0:
				what = "returns"
			}
			said = append(said, fmt.Sprintf("%d %s", i, what))
		}
	}
	return strings.Join(said, ", ")
}

var minute = Rotation{High: 10 * time.Second, Low: 2 * time.Second, Settle: 5 * time.Second, Keep: 1, StuckAfter: time.Minute}

const s = time.Second

func TestRotationHasHysteresis(t *testing.T) {
	r := newTurning(t, minute, 2)
	for i, step := range []struct {
		pass time.Duration
		lag  time.Duration // of replica 1
		want string
	}{
		{0, 0, ""},
		{s, 10 * s, ""}, // at High it stays
		{s, 11 * s, "1 leaves"},
		{s, 5 * s, ""}, // below High is not enough
		{s, 1 * s, ""},
		{4 * s, 1 * s, ""},
		{s / 2, 3 * s, ""}, // and again above Low
		{s, 1 * s, ""},
		{4 * s, 0, ""},
		{s, 0, "1 returns"},
		{s, 5 * s, ""},
		{s, 20 * s, "1 leaves"},
	} {
		if have := r.after(step.pass, 0, step.lag); have != step.want {
			t.Errorf("step %d: have %q, want %q", i, have, step.want)
		}
	}
}

func TestOutOfRotation(t *testing.T) {
	r := newTurning(t, minute, 2)
	r.after(0, 0, 20*s)
	for range 50 {
		r.want(r.decide(&Request{Set: r.set, Level: StaleOK}), 0, Anywhere)
	}
	q := r.read(wrote(900)) // goes by positions
	q.Prefer = r.set.Replicas[1]
	r.want(r.decide(q), 1, CaughtUp)
	q = &Request{Set: r.set, Level: StaleOK, Prefer: r.set.Replicas[1]}
	r.want(r.decide(q), 0, Anywhere)
	// A slow replica is better than the primary.
	q = &Request{Set: r.set, Level: StaleOK, Exclude: r.set.Replicas[0]}
	r.want(r.decide(q), 1, Anywhere)
	if st := r.router.Standing(r.set.Replicas[1], r.now.Add(s)); st.Out != s || !st.Known || st.Lag != 20*s || st.Stuck {
		t.Errorf("have %+v", st)
	}
}

func TestRotationKeepsTheLeastSlow(t *testing.T) {
	ro := minute
	ro.Keep = 2
	r := newTurning(t, ro, 4)
	if have := r.after(0, 40*s, 20*s, 30*s, 50*s); have != "3 leaves, 0 leaves" {
		t.Errorf("have %q", have)
	}
	r.kill(r.servers[1], r.node(1))
	if have := r.after(s, 40*s, 20*s, 30*s, 50*s); have != "0 returns" {
		t.Errorf("one has died: have %q, want the next least slow back", have)
	}
}

func TestNobodyLeavesWhoseLagIsNotKnown(t *testing.T) {
	r := newTurning(t, minute, 2)
	if have := r.after(0, 0, -1); have != "" {
		t.Errorf("have %q", have)
	}
	r.after(s, 0, 20*s)
	r.after(s, 0, -1)
	if have := r.after(time.Minute-2*s, 0, -1); have != "" {
		t.Errorf("back although its lag is not known: %q", have)
	}
}

func TestStuckIsReportedOnce(t *testing.T) {
	r := newTurning(t, minute, 2)
	r.after(0, 0, 20*s)
	var said []string
	for range 20 {
		if have := r.after(10*s, 0, 20*s); have != "" {
			said = append(said, have)
		}
	}
	if len(said) != 1 || said[0] != "1 stuck" {
		t.Errorf("have %q, want it once", said)
	}
	if !r.router.Standing(r.set.Replicas[1], r.now).Stuck {
		t.Error("standing does not say so")
	}
	r.after(s, 0, 0)
	if have := r.after(5*s, 0, 0); have != "1 returns" {
		t.Errorf("have %q", have)
	}
	if st := r.router.Standing(r.set.Replicas[1], r.now); st.Stuck || st.Out != 0 {
		t.Errorf("have %+v", st)
	}
	r.after(s, 0, 20*s)
	if have := r.after(2*time.Minute, 0, 20*s); have != "1 stuck" {
		t.Errorf("the next episode: have %q", have)
	}
}

func TestRotationIsSwitchedOff(t *testing.T) {
	r := newTurning(t, minute, 2)
	r.after(0, 0, 20*s)
	r.router.Use(Settings{})
	if have := r.after(s, 0, 20*s); have != "1 returns" {
		t.Errorf("have %q", have)
	}
	if have := r.after(s, 20*s, 20*s); have != "" {
		t.Errorf("have %q", have)
	}
}

func TestWorstLagOfTheLastHour(t *testing.T) {
	r := newTurning(t, Rotation{}, 1)
	worst := func() time.Duration { return r.router.Standing(r.set.Replicas[0], r.now).Worst }
	r.after(0, 3*s)
	r.after(time.Minute, 7*s)
	r.after(time.Minute, s)
	r.after(0, 2*s)
	if have := worst(); have != 7*s {
		t.Errorf("have %s, want 7s", have)
	}
	r.after(58*time.Minute, 0)
	r.after(time.Minute, 0)
	if have := worst(); have != 2*s {
		t.Errorf("an hour later: have %s, want 2s", have)
	}
	if have := r.router.Standing(&Replica{}, r.now); have != (Standing{}) {
		t.Errorf("of a stranger: have %+v", have)
	}
}
