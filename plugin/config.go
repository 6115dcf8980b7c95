package rywplugin

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/internal/sqlread"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// What a read without hint and session gets.
const (
	// Strong sends it to the primary.
	Strong = policy.DefaultStrong
	// StaleOK sends it to any healthy replica, as dbresolver does.
	StaleOK = policy.DefaultStaleOK
)

// How far reads are monotonic, see the constants of package policy.
const (
	MonotonicOn     = policy.MonotonicOn
	MonotonicStrict = policy.MonotonicStrict
	MonotonicOff    = policy.MonotonicOff
)

// ErrNotMonotonic is returned, in mode MonotonicStrict, for a read of the primary
// that might not show yet what the session has seen on a replica.
var ErrNotMonotonic = policy.ErrNotMonotonic

// Errors about a failover, see those of package policy.
var (
	ErrStalePrimary = policy.ErrStalePrimary
	ErrLostWrite    = policy.ErrLostWrite
)

// Who decides where reads go, see the constants of package policy.
const (
	Normal        = policy.Normal
	PrimaryOnly   = policy.PrimaryOnly
	PlainResolver = policy.PlainResolver
)

// ErrOverloaded is returned for a read that no replica qualifies for while as many
// reads have fallen back to the primary as Config.Fallback allows.
var ErrOverloaded = policy.ErrOverloaded

// Defaults of Config.
const (
	DefaultMaxWait        = policy.DefaultWait
	DefaultMaxTokenAge    = policy.DefaultMaxTokenAge
	DefaultCaptureTimeout = callbacks.DefaultCaptureTimeout
	DefaultProbeInterval  = watcher.DefaultIdleInterval
	DefaultProbeTimeout   = watcher.DefaultProbeTimeout
)

// NoWait as MaxWait sends a read to the primary at once when no replica has
// caught up.
const NoWait time.Duration = -1

// NoRotation as Rotation.High leaves every healthy replica in rotation.
const NoRotation time.Duration = -1

// AnyAge as MaxTokenAge accepts tokens however old.
const AnyAge time.Duration = -1

// Config configures a Plugin. The zero value is valid: it captures writes as
// marks and routes what an existing dbresolver is given Policy for.
type Config struct {
	// Replicas are opened by the plugin, which registers them with dbresolver.
	// A replica that is down does not keep the application from starting. Empty:
	// none, or those of an existing dbresolver. To be used with dialectors of
	// gorm.io/driver/postgres that have a DSN.
	Replicas []gorm.Dialector

	// Default is what a read with neither hint nor session gets. Zero: Strong.
	Default policy.Default

	// Balancer chooses among replicas that may all serve. Nil: the less busy of
	// two drawn at random (policy.LeastBusy).
	Balancer policy.Balancer

	// MaxWait bounds how long a read waits for a replica to catch up before the
	// primary serves it. It does not wait if no replica is expected to within that
	// time. Zero: DefaultMaxWait. NoWait: not at all.
	MaxWait time.Duration

	// MaxTokenAge is the age from which on a token is not judged any more: the
	// primary serves. Zero: DefaultMaxTokenAge. AnyAge: no limit.
	MaxTokenAge time.Duration

	// Mode is who decides where reads go. Zero: Normal. PrimaryOnly and PlainResolver,
	// which guarantees nothing, are for emergencies.
	Mode policy.Mode

	// Window has a session's reads go to the primary for that long after its last
	// write. Where replicas have positions that can be relied on it is asked for in
	// addition; where none has, as behind a connection pooler, it alone decides, and
	// proves nothing: a replica that is further behind serves stale reads. It is
	// counted by the wall clocks of the processes that a token passes through. Zero:
	// no window.
	Window time.Duration

	// Fallback caps the reads that the primary serves because no replica qualifies.
	// Zero: no caps.
	Fallback policy.Fallback

	// Rotation takes slow replicas out of the choice for reads that ask for nothing.
	// Zero fields: the defaults. High of NoRotation: all healthy replicas serve.
	Rotation policy.Rotation

	// Monotonic is how far a session's later reads are kept from seeing an older
	// state than its earlier ones. Zero: MonotonicOn.
	Monotonic policy.Monotonic

	// CaptureTimeout bounds how long a write waits for its position after the
	// commit; past it the write is marked instead, which the next read
	// resolves. Zero: DefaultCaptureTimeout.
	CaptureTimeout time.Duration

	// LazyCapture asks for no position after a commit: the write is marked, and
	// the next read of its session asks, or goes to the primary. It suits writers
	// whose writes are seldom read back. A primary opened with rywpgx captures
	// for nothing and ignores it.
	LazyCapture bool

	// ProbeInterval is the least time between questions to a server while no
	// read waits for it. Zero: DefaultProbeInterval.
	ProbeInterval time.Duration

	// ProbeTimeout bounds one question, connecting included. Zero:
	// DefaultProbeTimeout.
	ProbeTimeout time.Duration

	// Cluster tells clusters apart that have the same system identifier: clones
	// of one base backup. Every process that uses the cluster must be given the
	// same name, or none. Empty: none.
	Cluster string

	// TrustPools lets pools that this plugin did not open serve token reads,
	// although nothing proves which server their connections are to. Set it only
	// where each replica's address leads to exactly one server.
	TrustPools bool

	// SafeFunctions are SQL functions of yours, or of extensions, that only
	// read: statements calling them may go to a replica. Unknown functions go to
	// the primary. Lower case, with or without schema.
	SafeFunctions []string

	// WritingFunctions are SQL functions that must not run on a replica even
	// though they are known as harmless. They win over SafeFunctions.
	WritingFunctions []string

	// PrimaryTables are tables whose reads always go to the primary.
	PrimaryTables []string

	// Logger gets the plugin's own messages: nothing per query. Nil:
	// slog.Default.
	Logger *slog.Logger

	_ struct{}
}

// ErrConfig is the error of db.Use for a Config that makes no sense; the message
// starts with the field's name.
var ErrConfig = errors.New("gorm-ryw: invalid configuration")

func (c Config) withDefaults() Config {
	setDefault(&c.MaxWait, DefaultMaxWait)
	setDefault(&c.MaxTokenAge, DefaultMaxTokenAge)
	setDefault(&c.CaptureTimeout, DefaultCaptureTimeout)
	setDefault(&c.ProbeInterval, DefaultProbeInterval)
	setDefault(&c.ProbeTimeout, DefaultProbeTimeout)
	if c.Fallback.Rate > 0 || c.Fallback.Concurrent > 0 {
		setDefault(&c.Fallback.Wait, DefaultFallbackWait)
	}
	c.Rotation = rotationDefaults(c.Rotation)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}

// validate checks the fields after defaults were applied, singly and in pairs.
func (c Config) validate() error {
	for i, d := range c.Replicas {
		if d == nil {
			return invalid("Replicas[%d]: have nil, want a dialector", i)
		}
	}
	if err := c.validateDurations(); err != nil {
		return err
	}
	switch {
	case c.Default != Strong && c.Default != StaleOK:
		return invalid("Default: have %s, want Strong or StaleOK", c.Default)
	case !c.Mode.Valid():
		return invalid("Mode: have %s, want Normal, PrimaryOnly or PlainResolver", c.Mode)
	case !c.Monotonic.Valid():
		return invalid("Monotonic: have %s, want MonotonicOn, MonotonicStrict or MonotonicOff", c.Monotonic)
	case c.TrustPools && len(c.Replicas) > 0:
		return invalid("TrustPools: is set together with Replicas, whose connections are proven; want one of them")
	case c.ProbeTimeout < time.Millisecond:
		return invalid("ProbeTimeout: have %s, want 1ms or more", c.ProbeTimeout)
	}
	if err := validateFallback(c.Fallback); err != nil {
		return err
	}
	return validateRotation(c.Rotation)
}

func (c Config) validateDurations() error {
	for _, f := range []struct {
		name    string
		d       time.Duration
		special time.Duration
	}{
		{"MaxWait", c.MaxWait, NoWait},
		{"MaxTokenAge", c.MaxTokenAge, AnyAge},
		{"CaptureTimeout", c.CaptureTimeout, 0},
		{"ProbeInterval", c.ProbeInterval, 0},
		{"ProbeTimeout", c.ProbeTimeout, 0},
		{"Window", c.Window, 0},
		{"Fallback.Wait", c.Fallback.Wait, NoWait},
		{"Rotation.High", c.Rotation.High, NoRotation},
		{"Rotation.Low", c.Rotation.Low, 0},
		{"Rotation.Settle", c.Rotation.Settle, 0},
		{"Rotation.StuckAfter", c.Rotation.StuckAfter, 0},
	} {
		if f.d < 0 && f.d != f.special {
			return invalid("%s: have %s, want more than 0", f.name, f.d)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

func (c Config) settings() policy.Settings {
	fallback, rotation := c.Fallback, c.Rotation
	fallback.Wait, rotation.High = max(fallback.Wait, 0), max(rotation.High, 0)
	return policy.Settings{
		Default: c.Default, Balancer: c.Balancer,
		Wait: max(c.MaxWait, 0), MaxTokenAge: max(c.MaxTokenAge, 0), Monotonic: c.Monotonic,
		Mode: c.Mode, Window: c.Window, Fallback: fallback, Rotation: rotation,
	}
}

func (p *Plugin) watching() watcher.Config {
	c := &p.cfg
	return watcher.Config{IdleInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout, Name: c.Cluster, Notify: p.reporter.notify}
}

func (c Config) classifier() (*sqlread.Classifier, error) {
	cl, err := sqlread.New(sqlread.Rules{
		SafeFunctions: c.SafeFunctions, WritingFunctions: c.WritingFunctions, PrimaryTables: c.PrimaryTables,
	})
	if err != nil {
		return nil, invalid("%s", err)
	}
	return cl, nil
}
