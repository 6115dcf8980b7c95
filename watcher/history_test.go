package watcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func pastSample(ms int, lsn uint64) Sample {
	return Sample{System: 1, Position: at(1, lsn), Begun: mono.Instant(time.Duration(ms) * time.Millisecond)}
}

func TestHistorySince(t *testing.T) {
	var h history
	ms := func(n int) mono.Instant { return mono.Instant(time.Duration(n) * time.Millisecond) }
	if p, ok := h.since(-1); ok {
		t.Errorf("empty: have %s", p)
	}
	for i := 1; i <= 10; i++ {
		h.add(pastSample(100*i, uint64(1000*i)))
	}
	for _, tc := range []struct {
		from mono.Instant
		want uint64 // 0: none
	}{
		{-5, 1000}, {0, 1000}, {ms(100), 1000}, {ms(100) + 1, 2000}, {ms(450), 5000}, {ms(1000), 10000}, {ms(1000) + 1, 0},
	} {
		p, ok := h.since(tc.from)
		if ok != (tc.want != 0) || uint64(p.LSN) != tc.want {
			t.Errorf("since %d: have %s, %v, want %d", tc.from, p, ok, tc.want)
		}
	}
}

func TestHistoryKeepsTheNewest(t *testing.T) {
	var h history
	for i := 1; i <= 3*historySize; i++ {
		h.add(pastSample(20*i, uint64(i)))
	}
	if p, ok := h.since(0); !ok || p.LSN != 2*historySize+1 {
		t.Errorf("oldest: have %s, want %d", p, 2*historySize+1)
	}
}

func TestHistoryTakesOnePositionAStep(t *testing.T) {
	var h history
	for i := range 5 {
		h.add(pastSample(1000+5*i, uint64(100+i))) // 1000 to 1020 ms
	}
	h.add(pastSample(1001, 99)) // an answer that comes late
	if p, _ := h.since(0); p.LSN != 100 {
		t.Errorf("first: have %s", p)
	}
	if p, _ := h.since(mono.Instant(1001 * time.Millisecond)); p.LSN != 104 {
		t.Errorf("second: have %s, want the one 20ms later", p)
	}
}

// Positions of another timeline or cluster say nothing of how stale a replica is.
func TestHistoryBeginsAnewOnAnotherTimeline(t *testing.T) {
	promoted, moved := pastSample(1500, 500), pastSample(1500, 500)
	promoted.Position.Timeline, moved.System = 2, 2
	for name, s := range map[string]Sample{"timeline": promoted, "cluster": moved} {
		var h history
		h.add(pastSample(1000, 1000))
		h.add(s)
		if p, ok := h.since(0); !ok || p != s.Position {
			t.Errorf("%s: have %s, want %s", name, p, s.Position)
		}
	}
}

func TestPositionSince(t *testing.T) {
	c := newCluster(t, quiet)
	c.sample(c.group.Primary)
	c.settle(c.group.Primary, c.primary)
	c.primary.Advance(500)
	before := c.primary.Queries()
	if p, err := c.group.PositionSince(context.Background(), time.Hour); err != nil || p != at(1, 1000) {
		t.Errorf("within an hour: have %s, %v, want 1:0/3E8", p, err)
	}
	if have := c.primary.Queries() - before; have != 0 {
		t.Errorf("queries for what is remembered: have %d, want none", have)
	}
	if p, err := c.group.PositionSince(context.Background(), time.Nanosecond); err != nil || p != at(1, 1500) {
		t.Errorf("within a nanosecond: have %s, %v, want 1:0/5DC", p, err)
	}
	cause := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	hold := c.primary.Hold()
	defer hold.Release()
	if p, err := c.group.PositionSince(ctx, time.Nanosecond); !errors.Is(err, cause) || p != (token.Position{}) {
		t.Errorf("context ended: have %s, %v, want its cause", p, err)
	}
}

func TestStandbysPositionIsNotThePrimarysPast(t *testing.T) {
	c := newCluster(t, quiet)
	c.primary.Set(func(st *fakepg.State) { st.Standby = true })
	c.fails(c.group.Primary)
	if _, ok := c.group.past.since(0); ok {
		t.Error("remembered")
	}
}

// asked is a sample that was asked for and received at the given milliseconds.
func asked(begun, received int, lsn uint64) Sample {
	s := pastSample(begun, lsn)
	s.Received = mono.Instant(time.Duration(received) * time.Millisecond)
	return s
}

func TestHistoryLag(t *testing.T) {
	steady := func(h *history) { // 1000 bytes in 100 ms, each answer takes 10 ms
		for i := 1; i <= 10; i++ {
			h.add(asked(100*i, 100*i+10, uint64(1000*i)))
		}
	}
	for name, tc := range map[string]struct {
		past  func(h *history)
		of    Sample
		want  int // ms
		known bool
	}{
		"nothing remembered":                 {func(*history) {}, asked(500, 510, 1000), 0, false},
		"caught up":                          {steady, asked(1020, 1030, 10_000), 0, true},
		"ahead of what is known":             {steady, asked(1020, 1030, 12_000), 0, true},
		"primary moved on since":             {steady, asked(750, 760, 7000), 0, true},
		"answer came after the replica's":    {steady, asked(805, 806, 7000), 0, true},
		"one position behind":                {steady, asked(820, 830, 7999), 820 - 700, true},
		"half of it behind":                  {steady, asked(1020, 1030, 5000), 1020 - 500, true},
		"as far as the oldest":               {steady, asked(1020, 1030, 1000), 1020 - 100, true},
		"behind all that is remembered":      {steady, asked(1020, 1030, 999), 1020 - 110, false},
		"asked before anything was":          {steady, asked(50, 60, 999), 0, false},
		"asked before, and not behind":       {idle, asked(50, 60, 1000), 0, true},
		"still stands since long":            {func(h *history) { idle(h); h.add(asked(9000, 9010, 2000)) }, asked(9500, 9510, 1000), 500 + 1000, true},
		"nothing written since long":         {idle, asked(9500, 9510, 1000), 0, true},
		"another timeline than the primary":  {func(h *history) { h.add(onTimeline2(asked(100, 110, 5000))) }, asked(500, 510, 4000), 0, false},
		"another cluster than the primary's": {func(h *history) { s := asked(100, 110, 5000); s.System = 2; h.add(s) }, asked(500, 510, 4000), 0, false},
	} {
		var h history
		tc.past(&h)
		lag, known := h.lag(&tc.of)
		if want := time.Duration(tc.want) * time.Millisecond; lag != want || known != tc.known {
			t.Errorf("%s: have %s, known %v, want %s, %v", name, lag, known, want, tc.known)
		}
	}
}

// idle is a primary that is asked every second and does not move.
func idle(h *history) {
	for i := 1; i <= 8; i++ {
		h.add(asked(1000*i, 1000*i+10, 1000))
	}
}

func onTimeline2(s Sample) Sample {
	s.Position.Timeline = 2
	return s
}

func TestHistoryInLargeStepsReachesFurther(t *testing.T) {
	long := history{step: ageStep}
	var h history
	for i := range 3000 { // a minute
		s := asked(20*i+20, 20*i+21, uint64(i))
		h.add(s)
		long.add(s)
	}
	of := asked(60_100, 60_101, 100) // as the primary was after 2 s
	if lag, known := h.lag(&of); known || lag < 5*time.Second || lag > 6*time.Second {
		t.Errorf("small steps: have %s, known %v, want at least 5s", lag, known)
	}
	if lag, known := long.lag(&of); !known || lag < 58*time.Second || lag > 60*time.Second+ageStep {
		t.Errorf("large steps: have %s, known %v, want 58s to 62s", lag, known)
	}
	long.add(onTimeline2(asked(61_000, 61_001, 1)))
	long.add(onTimeline2(asked(62_000, 62_001, 2)))
	if p, ok := long.since(mono.Instant(62 * time.Second)); ok {
		t.Errorf("steps after a promotion: have %s a second later", p)
	}
}

func TestLag(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	lagIs := func(what string, known bool, ok func(time.Duration) bool) {
		t.Helper()
		if lag, is := n.Lag(); is != known || !ok(lag) {
			t.Errorf("%s: have %s, known %v, want known %v", what, lag, is, known)
		}
	}
	zero := func(d time.Duration) bool { return d == 0 }
	c.sample(c.group.Primary)
	lagIs("caught up", true, zero)
	c.primary.Advance(500)
	c.primarySince(historyStep)
	lagIs("primary moved on", true, zero)
	c.sample(n)
	lagIs("behind", true, func(d time.Duration) bool { return d >= historyStep && d < patience })
	s.Advance(500)
	c.sample(n)
	lagIs("caught up again", true, zero)
	if _, known := c.group.Primary.Lag(); known {
		t.Error("lag of a primary: known")
	}

	s.Fail("57P03")
	c.fails(n)
	lagIs("replica does not answer", false, zero)
	s.Fail("")
	c.recovered(n)
	lagIs("replica is back", true, zero)
	c.primary.Fail("57P03")
	c.fails(c.group.Primary)
	lagIs("primary does not answer", false, zero)
}

// primarySince has the primary asked until a position is remembered that was asked
// for some time after the newest now.
func (c *cluster) primarySince(d time.Duration) {
	c.t.Helper()
	first := c.sample(c.group.Primary).Begun
	for c.sample(c.group.Primary).Begun.Sub(first) <= d {
	}
}
