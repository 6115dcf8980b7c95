package rywplugin

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
)

// logged is what a plugin has logged.
type logged struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// said returns the lines since the last call that contain a text.
func (l *logged) said(part string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	l.buf.Reset()
	return lines
}

func logTo(l *logged) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestTuningIsWhatIsInForce(t *testing.T) {
	p := New(Config{MaxWait: NoWait, Default: StaleOK, Fallback: policy.Fallback{Concurrent: 3}})
	have, want := p.Tuning(), Tuning{
		Default: StaleOK, MaxWait: NoWait, MaxTokenAge: DefaultMaxTokenAge,
		Fallback: policy.Fallback{Concurrent: 3, Wait: DefaultFallbackWait},
		Rotation: policy.Rotation{
			High: DefaultRotationHigh, Low: DefaultRotationLow, Settle: DefaultRotationSettle,
			Keep: DefaultRotationKeep, StuckAfter: DefaultStuckAfter,
		},
	}
	if have != want {
		t.Errorf("have %+v, want %+v", have, want)
	}
	if s := p.router.Settings(); s.Wait != 0 || s.Fallback != want.Fallback || s.Rotation != want.Rotation {
		t.Errorf("routed by %+v", s)
	}
}

func TestTuneChangesWhatIsRoutedBy(t *testing.T) {
	p := New(Config{})
	balancer := p.router.Settings().Balancer
	err := p.Tune(func(tn *Tuning) {
		tn.Mode, tn.Default, tn.MaxWait, tn.Window = PrimaryOnly, StaleOK, time.Second, 3*time.Second
		tn.Fallback = policy.Fallback{Rate: 5}
		tn.Rotation.High = NoRotation
	})
	s := p.router.Settings()
	if err != nil || s.Mode != PrimaryOnly || s.Default != StaleOK || s.Wait != time.Second || s.Window != 3*time.Second ||
		s.Fallback != (policy.Fallback{Rate: 5, Wait: DefaultFallbackWait}) || s.Rotation.High != 0 || s.Balancer != balancer {
		t.Errorf("%v: have %+v", err, s)
	}
	if err := p.Tune(func(tn *Tuning) { tn.MaxWait, tn.Fallback = 0, policy.Fallback{} }); err != nil {
		t.Fatal(err)
	}
	if s := p.router.Settings(); s.Wait != DefaultMaxWait || s.Fallback != (policy.Fallback{}) || s.Mode != PrimaryOnly {
		t.Errorf("back at defaults: have %+v", s)
	}
}

// What is wrong changes nothing, not even what is right beside it.
func TestTuneRefusesWhatConfigDoes(t *testing.T) {
	p := New(Config{})
	was, settings := p.Tuning(), p.router.Settings()
	err := p.Tune(func(tn *Tuning) { tn.Mode, tn.MaxWait = PrimaryOnly, -2 })
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), ": MaxWait: have -2ns") {
		t.Errorf("have %v", err)
	}
	if p.Tuning() != was || p.router.Settings() != settings {
		t.Error("something changed")
	}
	if err := New(Config{MaxWait: -2}).Tune(func(*Tuning) {}); !errors.Is(err, ErrConfig) {
		t.Errorf("a plugin whose Config is wrong: have %v", err)
	}
}

func TestTuneByMany(t *testing.T) {
	p := New(Config{MaxWait: time.Second})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { _ = p.Tune(func(tn *Tuning) { tn.MaxWait += time.Millisecond }) })
		all.Go(func() { p.Tuning() })
	}
	all.Wait()
	if have := p.Tuning().MaxWait; have != time.Second+50*time.Millisecond {
		t.Errorf("have %s: a change was lost", have)
	}
}

func TestModeIsAnnounced(t *testing.T) {
	var log logged
	p := use(t, open(t, fakepg.New(t, fakepg.PrimaryAt(1000))), Config{Mode: PlainResolver, Logger: logTo(&log)})
	if have := log.said("level=ERROR"); len(have) != 1 || !strings.Contains(have[0], "nothing is guaranteed") {
		t.Errorf("from the start: have %q", have)
	}
	for _, step := range []struct {
		to    policy.Mode
		level string
		says  string
	}{
		{PrimaryOnly, "level=WARN", "every read goes to the primary"},
		{PlainResolver, "level=ERROR", "STALE"},
		{Normal, "level=INFO", "mode Normal"},
	} {
		if err := p.Tune(func(tn *Tuning) { tn.Mode = step.to }); err != nil {
			t.Fatal(err)
		}
		if have := log.said("gorm-ryw: mode"); len(have) != 1 || !strings.Contains(have[0], step.level) || !strings.Contains(have[0], step.says) {
			t.Errorf("%s: have %q", step.to, have)
		}
	}
	if err := p.Tune(func(*Tuning) {}); err != nil || len(log.said("")) != 0 {
		t.Errorf("nothing changed, and it was logged: %v", err)
	}
}

func TestTurnsAreLogged(t *testing.T) {
	var log logged
	p := use(t, open(t, fakepg.New(t, fakepg.PrimaryAt(1000))), Config{
		Replicas: dialectors(fakepg.New(t, fakepg.StandbyAt(2, 900))), Logger: logTo(&log),
	})
	rep := p.replicas()[0]
	for want, turn := range map[string]policy.Turn{
		"level=WARN msg=\"gorm-ryw: replica is stuck": {Lag: time.Second, Out: time.Hour, Stuck: true},
		"level=INFO msg=\"gorm-ryw: slow replica":     {Lag: time.Second},
		"level=INFO msg=\"gorm-ryw: replica is back":  {Out: time.Second},
	} {
		turn.Replica = rep
		p.reporter.turned(turn)
		eventually(t, want, func() bool { return len(log.said(want)) == 1 })
	}
}

func TestSuggestWindowWithoutMeasurement(t *testing.T) {
	p := New(Config{ProbeInterval: 400 * time.Millisecond})
	if have, known := p.SuggestWindow(); known || have != 750*time.Millisecond {
		t.Errorf("have %s, %v", have, known)
	}
}

func TestStatusShowsTuningAndFallbacks(t *testing.T) {
	p := use(t, open(t, fakepg.New(t, fakepg.PrimaryAt(1000))), Config{Window: time.Second})
	st := p.Status()
	if st.Tuning.Window != time.Second || len(st.Clusters) != 1 || st.Clusters[0].TokenReads != 0 {
		t.Errorf("have %+v", st)
	}
}
