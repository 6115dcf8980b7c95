package watcher

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func sampleAt(begun mono.Instant, lsn uint64) Sample {
	return Sample{System: 7, Begun: begun, Position: token.Position{Timeline: 1, LSN: token.LSN(lsn)}}
}

func TestLagIsSinceThePrimaryWasBeyond(t *testing.T) {
	base := mono.Now()
	second := func(n float64) mono.Instant { return base.Add(time.Duration(n * float64(time.Second))) }
	var h history
	for i := range 5 {
		h.add(sampleAt(second(float64(i)), uint64(100*(i+1)))) // 100 to 500
	}
	for _, tc := range []struct {
		at   float64
		lsn  uint64
		want float64
		ok   bool
	}{
		{4.5, 500, 0, true},
		{100, 500, 0, true}, // an idle primary makes nobody slow
		{100, 900, 0, true},
		{4.5, 499, 0.5, true},
		{4.5, 150, 3.5, true},
		{3.9, 499, 0, true}, // asked before the primary was there
		{4.5, 50, 0, false}, // before what is remembered
	} {
		lag, ok := h.lag(&Sample{System: 7, Begun: second(tc.at), Position: token.Position{Timeline: 1, LSN: token.LSN(tc.lsn)}})
		if ok != tc.ok || ok && lag != second(tc.want).Sub(base) {
			t.Errorf("at %d after %gs: have %s, %v, want %gs, %v", tc.lsn, tc.at, lag, ok, tc.want, tc.ok)
		}
	}
	other := sampleAt(second(5), 100)
	other.Position.Timeline = 2
	if _, ok := h.lag(&other); ok {
		t.Error("compared with another timeline")
	}
	if _, ok := new(history).lag(&other); ok {
		t.Error("known without a history")
	}
}

// Under load the fine history is seconds long; the coarse one goes on to minutes.
func TestLagOverMinutes(t *testing.T) {
	base := mono.Now()
	g := NewGroup(Config{}, "primary", nil)
	const step = 20 * time.Millisecond
	n := int(5 * time.Minute / step)
	for i := range n {
		s := sampleAt(base.Add(time.Duration(i)*step), uint64(1000+i))
		g.past.add(s)
		g.long.add(s)
	}
	now := base.Add(time.Duration(n) * step)
	for _, lag := range []time.Duration{0, time.Second, 30 * time.Second, MaxLag, time.Hour} {
		at := max(0, n-int(lag/step))
		node := newNode(g, "replica", Replica, nil)
		s := sampleAt(now, uint64(1000+at-1))
		s.Standby, s.Incarnation = true, 9
		node.state.Store(&State{Sample: s})
		have, ok := g.Lag(node)
		want := min(lag, MaxLag)
		if !ok || have < want-lagStep || have > max(want, 5*time.Minute) || lag < MaxLag && have > lag+step {
			t.Errorf("have %s, %v, want %s", have, ok, lag)
		}
	}
	if _, ok := g.Lag(newNode(g, "unknown", Replica, nil)); ok {
		t.Error("known of a node that was not asked")
	}
}
