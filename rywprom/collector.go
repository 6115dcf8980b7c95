package rywprom

import (
	"github.com/gorm-ryw/gorm-ryw/internal/series"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/prometheus/client_golang/prometheus"
)

// Plugin is what is exported: a *rywplugin.Plugin.
type Plugin = series.Plugin

// Option adds what is exported beside the plugin.
type Option = series.Option

// HTTP adds a *rywhttp.Middleware. Several are added up.
func HTTP(m series.Middleware) Option { return series.HTTP(m) }

// HTTPClient adds a *rywhttp.Transport, as via="http_client". Several are added up.
func HTTPClient(t series.Transport) Option { return series.Client(t) }

// Carrier adds a *carrier.Carrier, also that of rywgrpc or rywotel, under a name that
// becomes the label "via".
func Carrier(via string, c series.Carrier) Option { return series.Via(via, c) }

// Collector is a prometheus.Collector. Made by New. Safe for concurrent use.
type Collector struct {
	sources *series.Sources
	defs    []series.Def
	descs   []*prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector of what a plugin and the options count.
func New(p Plugin, more ...Option) *Collector {
	c := &Collector{sources: series.New(p, more), defs: series.All()}
	for _, d := range c.defs {
		c.descs = append(c.descs, prometheus.NewDesc(d.Prometheus, d.Help, d.Labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	now := c.sources.At()
	for i := range c.defs {
		def, desc := &c.defs[i], c.descs[i]
		if def.Kind == series.Histogram {
			def.Waits(now, func(w policy.Waits, labels ...string) { to <- histogram(desc, w, labels) })
			continue
		}
		kind := prometheus.CounterValue
		if def.Kind == series.Gauge {
			kind = prometheus.GaugeValue
		}
		for _, p := range def.Points(now) {
			to <- prometheus.MustNewConstMetric(desc, kind, p.Value, p.Labels...)
		}
	}
}

func histogram(desc *prometheus.Desc, w policy.Waits, labels []string) prometheus.Metric {
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, bound := range policy.WaitBounds {
		count += uint64(w.Counts[i])
		buckets[bound.Seconds()] = count
	}
	count += uint64(w.Counts[len(policy.WaitBounds)])
	return prometheus.MustNewConstHistogram(desc, count, w.Sum.Seconds(), buckets, labels...)
}
