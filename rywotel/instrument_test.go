package rywotel

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/series"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// app is a program on fake servers: a primary at 1000, a replica at 900.
type app struct {
	db      *gorm.DB
	ryw     *rywplugin.Plugin
	replica *fakepg.Server
}

func newApp(t *testing.T, first ...gorm.Plugin) *app {
	t.Helper()
	primary, replica := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	db, err := gorm.Open(postgres.Open(primary.DSN()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ryw := rywplugin.New(rywplugin.Config{
		Replicas: []gorm.Dialector{postgres.Open(replica.DSN())}, ProbeInterval: time.Hour, ProbeTimeout: 10 * time.Second,
		MaxWait: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	for _, p := range append(first, ryw) {
		if err := db.Use(p); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = ryw.Close()
		pool, _ := db.DB()
		_ = pool.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ryw.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return &app{db, ryw, replica}
}

func (a *app) instrument(t *testing.T, o Options) *Instrumentation {
	t.Helper()
	tel, err := Instrument(a.db, a.ryw, o)
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(db *gorm.DB) error { return db.Raw("select 1").Scan(new([]int)).Error }

// collect returns what is exported, by instrument.
func collect(t *testing.T, r sdkmetric.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	ok(t, r.Collect(t.Context(), &rm))
	all := map[string]metricdata.Metrics{}
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// sum adds up the points that have the attributes.
func sum[N int64 | float64](points []metricdata.DataPoint[N], with ...attribute.KeyValue) (n N) {
	for _, p := range points {
		all := true
		for _, kv := range with {
			v, has := p.Attributes.Value(kv.Key)
			all = all && has && v == kv.Value
		}
		if all {
			n += p.Value
		}
	}
	return n
}

func TestMetrics(t *testing.T) {
	a := newApp(t)
	reader := sdkmetric.NewManualReader()
	middleware, err := rywhttp.New(rywhttp.Config{})
	ok(t, err)
	tel := a.instrument(t, Options{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Sources:       []Source{HTTP(middleware), HTTPClient(&rywhttp.Transport{}), CarrierOf("jobs", &carrier.Carrier{})},
	})
	mine := a.db.WithContext(session.NewContext(t.Context(), session.New()))
	ok(t, mine.Exec("insert into p values (1)").Error)
	ok(t, read(mine))
	ok(t, read(a.db.Scopes(scopes.StaleOK())))

	have := collect(t, reader)
	reads := have["ryw.reads"].Data.(metricdata.Sum[int64])
	behind := []attribute.KeyValue{ReasonKey.String("behind"), RoleKey.String("primary"), HintKey.String("read_your_writes")}
	if !reads.IsMonotonic || sum(reads.DataPoints, behind...) != 1 || sum(reads.DataPoints, NodeKey.String(a.replica.Addr())) != 1 {
		t.Errorf("reads: have %+v", reads)
	}
	if gap := have["ryw.replica.gap"].Data.(metricdata.Gauge[int64]); sum(gap.DataPoints) != 100 || have["ryw.replica.gap"].Unit != "By" {
		t.Errorf("gap: have %+v", gap)
	}
	if age := have["ryw.node.sample.age"].Data.(metricdata.Gauge[float64]); sum(age.DataPoints) <= 0 || have["ryw.node.sample.age"].Unit != "s" {
		t.Errorf("age: have %+v", age)
	}
	waits := have["ryw.read.wait.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	if len(waits) != 1 || waits[0].Count != 1 || waits[0].Sum <= 0 || waits[0].Bounds[0] != 0.0005 {
		t.Errorf("waits: have %+v", waits)
	}
	for _, d := range series.All() {
		if _, ok := have[d.OpenTelemetry]; !ok {
			t.Errorf("%s: not exported", d.OpenTelemetry)
		}
	}
	if len(have) != len(series.All()) {
		t.Errorf("have %d instruments, want %d", len(have), len(series.All()))
	}

	ok(t, tel.Close())
	ok(t, tel.Close())
	ok(t, read(mine))
	if w := collect(t, reader)["ryw.read.wait.duration"].Data.(metricdata.Histogram[float64]).DataPoints; w[0].Count != 1 {
		t.Errorf("closed, and still told of reads: %+v", w)
	}
}

// tracing is a tracing plugin as they are: a span of its own around what is sent.
type tracing struct{ provider *sdktrace.TracerProvider }

func (tracing) Name() string { return "tracing" }

func (p tracing) Initialize(db *gorm.DB) error {
	before := func(tx *gorm.DB) {
		tx.Statement.Context, _ = p.provider.Tracer("test").Start(tx.Statement.Context, "statement")
	}
	after := func(tx *gorm.DB) { trace.SpanFromContext(tx.Statement.Context).End() }
	cb := db.Callback()
	return errors.Join(
		cb.Create().Before("gorm:create").Register("t:before", before), cb.Create().After("gorm:create").Register("t:after", after),
		cb.Query().Before("gorm:query").Register("t:before", before), cb.Query().After("gorm:query").Register("t:after", after),
		cb.Delete().Before("gorm:delete").Register("t:before", before), cb.Delete().After("gorm:delete").Register("t:after", after),
		cb.Update().Before("gorm:update").Register("t:before", before), cb.Update().After("gorm:update").Register("t:after", after),
		cb.Row().Before("gorm:row").Register("t:before", before), cb.Row().After("gorm:row").Register("t:after", after),
		cb.Raw().Before("gorm:raw").Register("t:before", before), cb.Raw().After("gorm:raw").Register("t:after", after),
	)
}

type thing struct {
	ID int
	N  int
}

// Each statement's span says where it went, whoever was installed first, and without a
// tracing plugin the caller's does.
func TestSpans(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec))
	plugin := tracing{provider}
	orders := map[string]func(t *testing.T) *app{
		"tracing first": func(t *testing.T) *app {
			a := newApp(t, plugin)
			a.instrument(t, Options{})
			return a
		},
		"in between": func(t *testing.T) *app {
			a := newApp(t)
			ok(t, a.db.Use(plugin))
			a.instrument(t, Options{})
			return a
		},
		"tracing last": func(t *testing.T) *app {
			a := newApp(t)
			a.instrument(t, Options{})
			ok(t, a.db.Use(plugin))
			return a
		},
		"the caller's span": func(t *testing.T) *app {
			a := newApp(t)
			a.instrument(t, Options{})
			return a
		},
	}
	for order, install := range orders {
		t.Run(order, func(t *testing.T) {
			a := install(t)
			for name, tc := range statements(a) {
				t.Run(name, func(t *testing.T) {
					rec.Reset()
					ctx, outer := provider.Tracer("test").Start(t.Context(), "caller")
					ok(t, tc.run(a.db.WithContext(ctx)))
					outer.End()
					span := rec.Ended()[0] // the statement's, or the only one
					have := attribute.NewSet(span.Attributes()...)
					for _, want := range tc.want {
						if v, is := have.Value(want.Key); !is || v != want.Value {
							t.Errorf("%s: have %v, want %v", span.Name(), span.Attributes(), want)
						}
					}
				})
			}
		})
	}
}

type statement struct {
	run  func(db *gorm.DB) error
	want []attribute.KeyValue
}

func statements(a *app) map[string]statement {
	primary := RoleKey.String("primary")
	write := []attribute.KeyValue{primary, NodeKey.String("primary"), ReasonKey.String("not_pure")}
	tokenOf := func(db *gorm.DB) *gorm.DB { return db.Scopes(scopes.ReadYourWrites("0/3E8")) }
	return map[string]statement{
		"replica": {func(db *gorm.DB) error { return read(db.Scopes(scopes.StaleOK())) }, []attribute.KeyValue{
			RoleKey.String("replica"), NodeKey.String(a.replica.Addr()), ReasonKey.String("anywhere"), HintKey.String("stale_ok"),
		}},
		"find": {func(db *gorm.DB) error { return db.Scopes(scopes.StaleOK()).Find(&[]thing{}).Error }, []attribute.KeyValue{
			RoleKey.String("replica"), ReasonKey.String("anywhere"),
		}},
		"fallback": {func(db *gorm.DB) error { return read(tokenOf(db)) }, []attribute.KeyValue{
			primary, ReasonKey.String("behind"), HintKey.String("read_your_writes"), GapKey.Int64(100),
		}},
		"exec": {func(db *gorm.DB) error { return db.Exec("insert into p values (1)").Error }, write},
		"delete": {func(db *gorm.DB) error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Delete(&thing{ID: 1}).Error
		}, write},
		"update": {func(db *gorm.DB) error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&thing{ID: 1}).Update("n", 2).Error
		}, write},
		"in a transaction": {func(db *gorm.DB) error {
			return db.Transaction(read)
		}, []attribute.KeyValue{primary, ReasonKey.String("in_transaction")}},
		"in a transaction on the replica": {func(db *gorm.DB) error {
			return db.Clauses(scopes.StaleOK().Clause()).Transaction(read, &sql.TxOptions{ReadOnly: true})
		}, []attribute.KeyValue{RoleKey.String("replica"), ReasonKey.String("anywhere")}},
	}
}

func TestNoSpans(t *testing.T) {
	rec := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(rec))
	a := newApp(t)
	a.instrument(t, Options{NoSpans: true})
	ctx, span := provider.Tracer("test").Start(t.Context(), "caller")
	ok(t, read(a.db.WithContext(ctx)))
	ok(t, a.db.WithContext(ctx).Exec("insert into p values (1)").Error)
	span.End()
	if have := rec.Ended()[0].Attributes(); len(have) != 0 {
		t.Errorf("have %v", have)
	}
}

func TestInstrumentNeedsThePlugin(t *testing.T) {
	a := newApp(t)
	if _, err := Instrument(a.db, rywplugin.New(rywplugin.Config{}), Options{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("have %v", err)
	}
	a.instrument(t, Options{})
	a.instrument(t, Options{}) // for another meter provider, say
}

// The attributes that the page about metrics has are those that there are.
func TestDocumentedAttributes(t *testing.T) {
	if _, err := os.Stat("../go.work"); err != nil {
		t.Skip("the page is in the repository, of which this is the module alone")
	}
	text, err := os.ReadFile("../docs/metrics.md")
	ok(t, err)
	_, traces, found := strings.Cut(string(text), "\n## Traces\n")
	if !found {
		t.Fatal("no chapter about traces")
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(ryw\\.[a-z_.]+)`").FindAllStringSubmatch(traces, -1) {
		documented[m[1]] = true
	}
	keys := []attribute.Key{NodeKey, RoleKey, ReasonKey, HintKey, WaitKey, GapKey, RetriesKey, PossiblyLostKey}
	for _, k := range keys {
		if !documented[string(k)] {
			t.Errorf("%s: not documented", k)
		}
	}
	if len(documented) != len(keys) {
		t.Errorf("have %d documented, want %d", len(documented), len(keys))
	}
}
