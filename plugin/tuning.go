package rywplugin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Defaults of Config.Fallback and Config.Rotation.
const (
	// DefaultFallbackWait is how much longer a read above a cap waits.
	DefaultFallbackWait = 250 * time.Millisecond
	// DefaultRotationHigh is the lag from which on a replica leaves rotation, where
	// another one serves.
	DefaultRotationHigh = time.Minute
	// DefaultRotationLow is the lag below which it has to stay for
	// DefaultRotationSettle to come back.
	DefaultRotationLow    = 10 * time.Second
	DefaultRotationSettle = 10 * time.Second
	// DefaultRotationKeep is how many replicas serve however slow they are.
	DefaultRotationKeep = 1
	// DefaultStuckAfter is how long a replica may be out before it is reported.
	DefaultStuckAfter = 10 * time.Minute
)

// Tuning is what can be changed while the plugin runs. The fields are those of Config.
type Tuning struct {
	Mode        policy.Mode
	Default     policy.Default
	MaxWait     time.Duration
	MaxTokenAge time.Duration
	Window      time.Duration
	Fallback    policy.Fallback
	Rotation    policy.Rotation
}

func (c Config) tuning() Tuning {
	return Tuning{
		Mode: c.Mode, Default: c.Default, MaxWait: c.MaxWait, MaxTokenAge: c.MaxTokenAge,
		Window: c.Window, Fallback: c.Fallback, Rotation: c.Rotation,
	}
}

func (c Config) tuned(t Tuning) Config {
	c.Mode, c.Default, c.MaxWait, c.MaxTokenAge = t.Mode, t.Default, t.MaxWait, t.MaxTokenAge
	c.Window, c.Fallback, c.Rotation = t.Window, t.Fallback, t.Rotation
	return c
}

// Tuning returns the settings that are in force, defaults filled in.
func (p *Plugin) Tuning() Tuning {
	p.tuneMu.Lock()
	defer p.tuneMu.Unlock()
	return p.tuned
}

// Tune changes settings while the plugin runs: all that change does are in force at
// once, for reads that are decided from then on. It is given what is in force, and a
// field set to zero takes its default. What would not be a valid Config changes nothing
// and is the error, which wraps ErrConfig. It must not call p.
func (p *Plugin) Tune(change func(*Tuning)) error {
	p.tuneMu.Lock()
	defer p.tuneMu.Unlock()
	t := p.tuned
	change(&t)
	cfg := p.cfg.tuned(t).withDefaults()
	if err := errors.Join(p.invalidConfig, cfg.validate()); err != nil {
		return err
	}
	was := p.tuned
	p.tuned = cfg.tuning()
	p.router.Use(cfg.settings())
	if p.tuned != was {
		p.cfg.Logger.Info("gorm-ryw: settings changed", "from", was, "to", p.tuned)
	}
	if p.tuned.Mode != was.Mode {
		p.announce(p.tuned.Mode)
	}
	return nil
}

// announce says so when reads are not routed as they should be.
func (p *Plugin) announce(m policy.Mode) {
	level, means := meaning(m)
	p.cfg.Logger.Log(context.Background(), level, "gorm-ryw: mode "+m.String(), "means", means)
}

// meaning is what a mode does, and how bad that is.
func meaning(m policy.Mode) (slog.Level, string) {
	switch m {
	case PlainResolver:
		return slog.LevelError, "reads go where dbresolver sends them and may be STALE: nothing is guaranteed"
	case PrimaryOnly:
		return slog.LevelWarn, "every read goes to the primary"
	}
	return slog.LevelInfo, "reads are routed by what they must see"
}

// SuggestWindow returns a time for Config.Window: twice the greatest lag that was
// measured on any replica in the last hour, and the time between two measurements. It
// is false as long as nothing was measured. It proves nothing: a replica may fall
// further behind than it ever was, and where several servers answer at one address the
// lag is that of some of them.
func (p *Plugin) SuggestWindow() (time.Duration, bool) {
	worst, known := time.Duration(0), false
	for _, rep := range p.replicas() {
		s := p.router.Standing(rep, mono.Now())
		known = known || s.Known
		worst = max(worst, s.Worst)
	}
	between := p.cfg.ProbeInterval + p.cfg.ProbeInterval/4 + rotateEvery
	return (2*worst + between).Round(10 * time.Millisecond), known
}

func rotationDefaults(r policy.Rotation) policy.Rotation {
	if r.High == NoRotation {
		return policy.Rotation{High: NoRotation}
	}
	setDefault(&r.High, DefaultRotationHigh)
	setDefault(&r.Low, min(DefaultRotationLow, r.High/2))
	setDefault(&r.Settle, DefaultRotationSettle)
	setDefault(&r.StuckAfter, DefaultStuckAfter)
	if r.Keep == 0 {
		r.Keep = DefaultRotationKeep
	}
	return r
}

func validateFallback(f policy.Fallback) error {
	switch {
	case !(f.Rate >= 0): // nor is NaN
		return invalid("Fallback.Rate: have %g a second, want 0 or more", f.Rate)
	case f.Burst < 0:
		return invalid("Fallback.Burst: have %d, want 0 or more", f.Burst)
	case f.Concurrent < 0:
		return invalid("Fallback.Concurrent: have %d, want 0 or more", f.Concurrent)
	case f.Burst > 0 && f.Rate == 0:
		return invalid("Fallback.Burst: have %d without a Rate, want both", f.Burst)
	case f.Stale && f.Rate == 0 && f.Concurrent == 0:
		return invalid("Fallback.Stale: is set without a cap, want Rate or Concurrent as well")
	}
	return nil
}

func validateRotation(r policy.Rotation) error {
	switch {
	case r.High == NoRotation:
		return nil
	case r.High > watcher.MaxLag:
		return invalid("Rotation.High: have %s, want %s or less", r.High, watcher.MaxLag)
	case r.Low >= r.High:
		return invalid("Rotation.Low: have %s, want less than High, which is %s", r.Low, r.High)
	case r.Keep < 1:
		return invalid("Rotation.Keep: have %d, want 1 or more", r.Keep)
	}
	return nil
}
