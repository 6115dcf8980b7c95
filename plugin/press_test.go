package rywplugin

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

func at(d time.Duration) mono.Instant { return mono.Instant(time.Hour + d) }

// printed are the texts that are due at a time.
func printed(p *press, d time.Duration) (texts []string) {
	for _, l := range p.due(at(d)) {
		level, text, attrs := l.text()
		texts = append(texts, fmt.Sprint(level, " ", text, " ", attrs))
	}
	return texts
}

func changed(n *watcher.Node, from, to watcher.Condition) news {
	return news{kind: stateChanged, node: "r1", event: watcher.Event{Node: n, From: from, To: to, Reason: "why " + to.String()}}
}

func TestPress(t *testing.T) {
	g := watcher.NewGroup(watcher.Config{}, "p", nil)
	primary, replica := g.Primary, &watcher.Node{}
	for name, tc := range map[string]struct {
		news []news
		want string
	}{
		"proven":      {[]news{changed(replica, watcher.Unknown, watcher.Proven)}, "INFO replica serves token reads [node=r1 from=unknown to=proven changes=1 reason=why proven]"},
		"settled":     {[]news{changed(replica, watcher.Unknown, watcher.Healthy), changed(replica, watcher.Healthy, watcher.Proven)}, "INFO replica serves token reads [node=r1 from=unknown to=proven changes=2 reason=why proven]"},
		"unproven":    {[]news{changed(replica, watcher.Proven, watcher.Healthy)}, "WARN replica serves no token reads [node=r1 from=proven to=healthy changes=1 reason=why healthy]"},
		"ineligible":  {[]news{changed(replica, watcher.Proven, watcher.Ineligible)}, "WARN replica serves no reads [node=r1 from=proven to=ineligible changes=1 reason=why ineligible]"},
		"down":        {[]news{changed(replica, watcher.Proven, watcher.Down)}, "WARN replica does not answer [node=r1 from=proven to=down changes=1 reason=why down]"},
		"primary":     {[]news{changed(primary, watcher.Unknown, watcher.Proven)}, "INFO primary answers ["},
		"primary out": {[]news{changed(primary, watcher.Proven, watcher.Down)}, "WARN primary does not answer the watcher ["},
		"no primary":  {[]news{changed(primary, watcher.Proven, watcher.Ineligible)}, "WARN primary does not answer as one ["},
		"promoted":    {[]news{{kind: promoted, node: "p", event: watcher.Event{OldTimeline: 1, NewTimeline: 2}}}, "WARN another server was promoted [node=p from_timeline=1 to_timeline=2]"},
		"refused":     {[]news{{kind: refused, node: "r1", event: watcher.Event{Reason: "pooled"}}}, "WARN replica's pool is refused for token reads [node=r1 reason=pooled]"},
		"capture":     {[]news{{kind: captureFailed, node: "p", err: errors.New("gone")}, {kind: captureFailed, node: "p", err: errors.New("late")}}, "WARN position of a write not captured, marked instead [node=p error=late times=2]"},
		"no position": {[]news{{kind: noPosition, node: "p", err: errors.New("gone")}}, "WARN a connection to the primary gives no position, its writes are marked [node=p error=gone times=1]"},
		"overloaded":  {[]news{{kind: shed, node: "p", err: errors.New("20 at most")}}, "WARN too many reads fall back to the primary, some fail [node=p times=1 error=20 at most]"},
		"stale":       {[]news{{kind: shed, node: "p"}, {kind: shed, node: "p"}}, "WARN too many reads fall back to the primary, some are served stale [node=p times=2]"},
		"slow":        {[]news{{kind: leftRotation, node: "r1", turn: policy.Turn{Lag: time.Minute}}}, "INFO slow replica leaves rotation [node=r1 lag=1m0s]"},
		"back":        {[]news{{kind: backInRotation, node: "r1", turn: policy.Turn{Out: time.Minute}}}, "INFO replica is back in rotation [node=r1 lag=0s out_for=1m0s]"},
		"stuck":       {[]news{{kind: stuckOut, node: "r1", turn: policy.Turn{Lag: time.Minute, Out: time.Hour}}}, "WARN replica is stuck out of rotation [node=r1 lag=1m0s out_for=1h0m0s]"},
		"lost":        {[]news{{kind: possiblyLost, node: "p"}}, "ERROR a session has written or read what may have been lost in a failover [node=p times=1]"},
	} {
		t.Run(name, func(t *testing.T) {
			var p press
			for _, n := range tc.news {
				p.take(n, at(0))
			}
			have := printed(&p, newsSettle)
			if len(have) != 1 || !strings.HasPrefix(have[0], tc.want) {
				t.Errorf("have %q, want %q", have, tc.want)
			}
			if again := printed(&p, time.Hour); len(again) != 0 {
				t.Errorf("again: have %q", again)
			}
		})
	}
}

// A node that changes back and forth makes a line now and then, not for each change,
// and the last line says how it is.
func TestPressOfANodeThatFlaps(t *testing.T) {
	var p press
	n := &watcher.Node{}
	lines := 0
	for ms := 0; ms < 60_000; ms += 10 {
		now := time.Duration(ms) * time.Millisecond
		from, to := watcher.Proven, watcher.Down
		if ms%20 != 0 {
			from, to = to, from
		}
		p.take(changed(n, from, to), at(now))
		lines += len(printed(&p, now))
	}
	if lines < 5 || lines > 7 {
		t.Errorf("have %d lines in a minute, want one each %s", lines, newsInterval)
	}
	if next := p.next(at(time.Minute)); next <= 0 || next > newsInterval {
		t.Errorf("next: have %s", next)
	}
	have := printed(&p, time.Minute+newsInterval)
	if len(have) != 1 || !strings.Contains(have[0], "to=proven") || strings.Contains(have[0], "changes=1 ") {
		t.Errorf("have %q", have)
	}
	if p.next(at(2*time.Minute)) != time.Hour {
		t.Error("something is left")
	}
}

func TestPressKeepsNodesAndKindsApart(t *testing.T) {
	var p press
	for i := range 3 {
		p.take(news{kind: possiblyLost, node: fmt.Sprint(i)}, at(0))
		p.take(news{kind: captureFailed, node: fmt.Sprint(i)}, at(0))
	}
	if have := printed(&p, 0); len(have) != 6 {
		t.Errorf("have %q", have)
	}
}

// buffer is an io.Writer that may be read meanwhile.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) has(part string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.b.String(), part)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(20 * time.Second); !ok(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("did not come: %s", what)
		}
	}
}

func TestEventsAreLogged(t *testing.T) {
	var out buffer
	a := newApp(t, Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}, 1000)
	replica := a.replicas[0]
	proven := `level=INFO msg="gorm-ryw: replica serves token reads" node=` + replica.Addr()
	eventually(t, proven, func() bool { return out.has(proven) })
	for range 100 {
		a.read(a.db)
	}
	a.primary.Crash(func(st *fakepg.State) { st.Timeline = 2 })
	for _, g := range a.ryw.groups {
		eventually(t, "new timeline", func() bool { _, err := g.Primary.Sample(t.Context()); return err == nil && g.Timeline() == 2 })
	}
	promoted := `level=WARN msg="gorm-ryw: another server was promoted"`
	eventually(t, promoted, func() bool { return out.has(promoted) })
	if out.has("select 1") {
		t.Error("a query was logged")
	}
}

// The first read that is shed makes a line, and says why; those after it are counted.
func TestShedReadsAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		stale bool
		want  string
	}{
		"failed":       {false, `, some fail" node=`},
		"served stale": {true, `, some are served stale" node=`},
	} {
		t.Run(name, func(t *testing.T) {
			var out buffer
			a := newApp(t, Config{
				Logger:   slog.New(slog.NewTextHandler(&out, nil)),
				Fallback: policy.Fallback{Rate: 0.001, Burst: 1, Wait: NoWait, Stale: tc.stale},
			}, 900)
			ctx, _ := withSession()
			a.write(a.db.WithContext(ctx))
			a.want(a.db.WithContext(ctx), -1, policy.Behind)
			const line = `level=WARN msg="gorm-ryw: too many reads fall back to the primary`
			if out.has(line) {
				t.Error("it was logged before a read was shed")
			}
			for range 5 {
				tx := a.db.WithContext(ctx).Raw("select 1").Scan(new([]int))
				if shed := errors.Is(tx.Error, ErrOverloaded) || Explain(tx).Stale; !shed {
					t.Fatalf("have %v, %s", tx.Error, Explain(tx))
				}
			}
			eventually(t, tc.want, func() bool { return out.has(line + tc.want + a.primary.Addr()) })
		})
	}
}

// slow is a log that hangs until it is told to go on.
type slow struct{ wait chan struct{} }

func (s slow) Write(p []byte) (int, error) { <-s.wait; return len(p), nil }

// Whoever has news does not wait for the log, however much there is.
func TestReporterDoesNotHoldAnybodyUp(t *testing.T) {
	s := slow{make(chan struct{})}
	r := newReporter(slog.New(slog.NewTextHandler(s, nil)))
	for i := range 4 * newsRoom {
		r.tell(callbacks.Event{Kind: callbacks.CaptureFailed, Node: fmt.Sprint(i), Err: errors.New("x")})
	}
	close(s.wait)
	r.close()
	r.close()
	r.tell(callbacks.Event{Kind: callbacks.CaptureFailed})
}

func TestReporterStartStop(t *testing.T) {
	for range 50 {
		r := newReporter(slog.New(slog.DiscardHandler))
		go r.tell(callbacks.Event{Kind: callbacks.PossiblyLost})
		var all sync.WaitGroup
		for range 3 {
			all.Go(r.close)
		}
		all.Wait()
	}
}

func TestReporterThatHasNothingToTell(t *testing.T) {
	leakcheck.Check(t)
	r := newReporter(slog.New(slog.DiscardHandler))
	r.close()
	r.tell(callbacks.Event{Kind: callbacks.PossiblyLost}) // starts nothing any more
}
