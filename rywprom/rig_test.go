package rywprom

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// series are the samples of a registry: "name{label="value",…}" in the order that
// Prometheus has them. A histogram's are _bucket, _sum and _count.
type samples map[string]float64

func gather(t *testing.T, reg prometheus.Gatherer) samples {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := samples{}
	for _, f := range families {
		for _, m := range f.Metric {
			name, labels := f.GetName(), labelsOf(m)
			switch {
			case m.Histogram != nil:
				all[name+"_count{"+labels+"}"] = float64(m.Histogram.GetSampleCount())
				all[name+"_sum{"+labels+"}"] = m.Histogram.GetSampleSum()
				all[name+"_bucket{"+labels+`,le="+Inf"}`] = float64(m.Histogram.GetSampleCount())
			case m.Counter != nil:
				all[name+"{"+labels+"}"] = m.Counter.GetValue()
			default:
				all[name+"{"+labels+"}"] = m.Gauge.GetValue()
			}
		}
	}
	return all
}

func labelsOf(m *dto.Metric) string {
	var all []string
	for _, l := range m.Label {
		all = append(all, l.GetName()+`="`+l.GetValue()+`"`)
	}
	return strings.Join(all, ",")
}

// sum adds up what has a name and all of the labels.
func (s samples) sum(name string, labels ...string) (sum float64, found bool) {
	for key, v := range s {
		if !strings.HasPrefix(key, name+"{") {
			continue
		}
		all := true
		for _, l := range labels {
			all = all && strings.Contains(key, l)
		}
		if all {
			sum, found = sum+v, true
		}
	}
	return sum, found
}

// running is a program on fake servers that has done a bit of everything.
func running(t *testing.T) *prometheus.Registry {
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
	if err := db.Use(ryw); err != nil {
		t.Fatal(err)
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
	c := &carrier.Carrier{}
	middleware, err := rywhttp.New(rywhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	use(t, db, middleware)
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(New(ryw, HTTP(middleware), Carrier("jobs", c), HTTPClient(&rywhttp.Transport{}))); err != nil {
		t.Fatal(err)
	}
	return reg
}

func use(t *testing.T, db *gorm.DB, middleware *rywhttp.Middleware) {
	t.Helper()
	read := func(db *gorm.DB) {
		if err := db.Raw("select 1").Scan(new([]int)).Error; err != nil {
			t.Fatal(err)
		}
	}
	mine := db.WithContext(session.NewContext(t.Context(), session.New()))
	if err := mine.Exec("insert into p values (1)").Error; err != nil {
		t.Fatal(err)
	}
	read(mine)
	read(db)
	read(db.Scopes(scopes.StaleOK()))
	read(db.Scopes(scopes.Strong()))
	read(db.Scopes(scopes.ReadYourWrites(token.FromLSN(800))))
	h := middleware.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}
