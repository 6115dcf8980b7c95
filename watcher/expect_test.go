package watcher

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

const ms = mono.Instant(time.Millisecond)

// line is a group whose primary was at position 100 i at i steps of 10 ms before now,
// and a replica that was asked just now and was at a position.
func line(t *testing.T, now mono.Instant, replica uint64) *Node {
	t.Helper()
	g := NewGroup(Config{}, "p", nil)
	for i := range mono.Instant(10) {
		s := Sample{Position: at(1, 100*uint64(i+1)), System: fakepg.System, Incarnation: 1}
		s.Begun = now - 10*ms*(9-i)
		s.Received = s.Begun
		g.update(g.Primary, func(*State) *State { return g.Primary.judge(s, &State{}) })
	}
	n := newNode(g, "r", Replica, nil)
	s := Sample{Position: at(1, replica), Standby: true, System: fakepg.System, Incarnation: 2, Begun: now, Received: now}
	n.state.Store(n.judge(s, &State{}))
	return n
}

func TestExpectedAt(t *testing.T) {
	for name, c := range map[string]struct {
		replica uint64
		want    uint64
		in      mono.Instant // from now
	}{
		"20 ms behind, written just now":       {700, 1000, 20 * ms},
		"20 ms behind, written 10 ms ago":      {700, 900, 10 * ms},
		"20 ms behind, should be there by now": {700, 800, 0},
		"between two positions":                {750, 1000, 20 * ms},
		"not behind":                           {1000, 1000, 0},
		"ahead of what is known":               {1050, 1000, 0},
		"all that is remembered behind":        {1, 1000, 90 * ms},
	} {
		now := mono.Now()
		have, known := line(t, now, c.replica).ExpectedAt(at(1, c.want), now+1)
		if !known || have != now+c.in {
			t.Errorf("%s: have %s from now (known %v), want %s", name, have.Sub(now), known, time.Duration(c.in))
		}
	}
}

// What the primary was not seen at yet it cannot have passed long ago.
func TestExpectedAtBeyondWhatIsKnown(t *testing.T) {
	now := mono.Now()
	if have, known := line(t, now, 700).ExpectedAt(at(1, 1001), now+5*ms); !known || have != now+25*ms {
		t.Errorf("have %s from now, want 25ms", have.Sub(now))
	}
	// A bare position counts on the primary's timeline, another timeline is not known.
	if have, _ := line(t, now, 700).ExpectedAt(at(0, 1000), now+5*ms); have != now+20*ms {
		t.Errorf("bare: have %s from now", have.Sub(now))
	}
}

func TestNothingIsExpected(t *testing.T) {
	now := mono.Now()
	n := line(t, now-30*ms, 700)
	if _, known := n.ExpectedAt(at(1, 1000), now); known {
		t.Error("known by an answer of 30 ms ago")
	}
	n = line(t, now, 700)
	paused := *n.State()
	paused.Paused = true
	n.state.Store(&paused)
	if have, known := n.ExpectedAt(at(1, 1000), now); !known || have != Never {
		t.Errorf("paused: have %d, want never", have)
	}
	held := *n.State()
	held.Paused, held.held = false, true
	n.state.Store(&held)
	if have, known := n.ExpectedAt(at(1, 1000), now); !known || have != Never {
		t.Errorf("held: have %d, want never", have)
	}
	n.state.Store(&State{Failed: true})
	if _, known := n.ExpectedAt(at(1, 1000), now); known {
		t.Error("known of a node that failed")
	}
}

// A sample that happens to be of just before a write says nothing of the lag, one of
// just behind it does.
func TestPaceIsKeptWhileNothingContradicts(t *testing.T) {
	now := mono.Now()
	n := line(t, now, 700) // lacks what was written 20 ms ago
	expect := func(replica uint64, asked mono.Instant, in mono.Instant) {
		t.Helper()
		st := *n.State()
		st.Position, st.Begun, st.Received, st.At = at(1, replica), asked, asked, asked
		n.state.Store(&st)
		if have, known := n.ExpectedAt(at(1, 1000), asked); !known || have != now+in {
			t.Errorf("at %d: have %s from then, want %s", replica, have.Sub(now), time.Duration(in))
		}
	}
	expect(700, now, 20*ms)
	expect(800, now+ms, 20*ms)   // lacks what was 10 ms before, had what was 20 ms before
	expect(900, now+3*ms, 13*ms) // had what was 10 ms before: it cannot be 20 ms behind
	expect(1000, now+3*ms, 3*ms) // it is there
	expect(700, now+5*ms, 25*ms)
	expect(900, now+ms+mono.Instant(paceLife), mono.Instant(paceLife)+ms)
}
