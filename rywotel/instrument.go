package rywotel

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/internal/series"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"gorm.io/gorm"
)

// scope is the name of the instrumentation.
const scope = "github.com/gorm-ryw/gorm-ryw/rywotel"

// ErrNotInstalled is returned for a plugin that is not installed on the *gorm.DB.
var ErrNotInstalled = errors.New("rywotel: the plugin is not installed on this *gorm.DB: call db.Use first")

// Options say what Instrument does beside the plugin's own. The zero value is valid.
type Options struct {
	// MeterProvider makes the instruments. Nil: otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// NoSpans leaves spans alone.
	NoSpans bool
	// Sources are what is exported beside the plugin, see HTTP, HTTPClient and
	// CarrierOf.
	Sources []Source

	_ struct{}
}

// Source is what is exported beside the plugin.
type Source = series.Option

// HTTP adds a *rywhttp.Middleware. Several are added up.
func HTTP(m series.Middleware) Source { return series.HTTP(m) }

// HTTPClient adds a *rywhttp.Transport, as ryw.via "http_client". Several are added up.
func HTTPClient(t series.Transport) Source { return series.Client(t) }

// CarrierOf adds a *carrier.Carrier, a Propagator's too, under a name that becomes the
// attribute ryw.via.
func CarrierOf(via string, c series.Carrier) Source { return series.Via(via, c) }

// Instrumentation is what Instrument has set up. Safe for concurrent use.
type Instrumentation struct {
	callback metric.Registration
	undo     func()
}

// Instrument has the meter provider read ryw.Status() at each collection, and puts
// attributes on the spans that are active when statements of db run: where each went,
// why, and how long it waited. The series are those of docs/metrics.md. db is the one
// that the plugin is installed on. The order to tracing plugins does not matter.
func Instrument(db *gorm.DB, ryw *rywplugin.Plugin, o Options) (*Instrumentation, error) {
	if db.Plugins[ryw.Name()] != gorm.Plugin(ryw) {
		return nil, ErrNotInstalled
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m := meter{Meter: o.MeterProvider.Meter(scope), sources: series.New(ryw, o.Sources)}
	callback, err := m.observe()
	if err != nil {
		return nil, fmt.Errorf("rywotel: %w", err)
	}
	waits, err := m.waits()
	if err == nil && !o.NoSpans {
		err = registerSpans(db)
	}
	if err != nil {
		return nil, fmt.Errorf("rywotel: %w", errors.Join(err, callback.Unregister()))
	}
	return &Instrumentation{callback: callback, undo: ryw.OnRead(func(ctx context.Context, e rywplugin.Explanation) {
		if e.Waited > 0 {
			waits.Record(ctx, e.Waited.Seconds(), metric.WithAttributes(roleOf(e)))
		}
		if !o.NoSpans {
			onSpan(ctx, e)
		}
	})}, nil
}

// Close ends what reads cost; the spans of writes keep their attributes. Idempotent.
func (i *Instrumentation) Close() error {
	i.undo()
	return i.callback.Unregister()
}

// meter makes the instruments.
type meter struct {
	metric.Meter
	sources *series.Sources
}

// instrument is one that is observed, by the kind of its numbers.
type instrument struct {
	def    series.Def
	ints   metric.Int64Observable
	floats metric.Float64Observable
}

func (m *meter) observe() (metric.Registration, error) {
	var all []instrument
	var observed []metric.Observable
	for _, d := range series.All() {
		if d.Kind == series.Histogram {
			continue
		}
		in, err := m.instrument(d)
		if err != nil {
			return nil, err
		}
		all = append(all, in)
		if in.ints != nil {
			observed = append(observed, in.ints)
		} else {
			observed = append(observed, in.floats)
		}
	}
	return m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		now := m.sources.At()
		for i := range all {
			all[i].put(now, to)
		}
		return nil
	}, observed...)
}

func (m *meter) instrument(d series.Def) (in instrument, err error) {
	in.def = d
	help, unit := metric.WithDescription(d.Help), metric.WithUnit(d.Unit)
	switch {
	case d.Kind == series.Counter:
		in.ints, err = m.Int64ObservableCounter(d.OpenTelemetry, help, unit)
	case d.Unit == series.Seconds:
		in.floats, err = m.Float64ObservableGauge(d.OpenTelemetry, help, unit)
	default:
		in.ints, err = m.Int64ObservableGauge(d.OpenTelemetry, help, unit)
	}
	return in, err
}

func (in *instrument) put(now *series.Moment, to metric.Observer) {
	for _, p := range in.def.Points(now) {
		with := metric.WithAttributes(attributes(in.def.Labels, p.Labels)...)
		if in.ints != nil {
			to.ObserveInt64(in.ints, int64(p.Value), with)
		} else {
			to.ObserveFloat64(in.floats, p.Value, with)
		}
	}
}

func attributes(names, values []string) []attribute.KeyValue {
	all := make([]attribute.KeyValue, len(names))
	for i, name := range names {
		all[i] = attribute.String("ryw."+name, values[i])
	}
	return all
}

func (m *meter) waits() (metric.Float64Histogram, error) {
	for _, d := range series.All() {
		if d.Kind == series.Histogram {
			bounds := make([]float64, len(policy.WaitBounds))
			for i, b := range policy.WaitBounds {
				bounds[i] = b.Seconds()
			}
			return m.Float64Histogram(d.OpenTelemetry, metric.WithDescription(d.Help), metric.WithUnit(d.Unit),
				metric.WithExplicitBucketBoundaries(bounds...))
		}
	}
	return nil, errors.New("no histogram is defined")
}
