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
