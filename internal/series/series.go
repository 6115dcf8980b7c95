// Package series says which numbers of the library are exported, under which names,
// and reads them. The modules for Prometheus and OpenTelemetry have them from here,
// so that both export the same.
package series

import (
	"strings"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
)

// Kind is how a number behaves.
type Kind uint8

// The kinds.
const (
	// Counter only grows.
	Counter Kind = iota
	// Gauge goes up and down.
	Gauge
	// Histogram counts durations in buckets.
	Histogram
)

func (k Kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// Units of the numbers, as OpenTelemetry writes them (UCUM).
const (
	Seconds = "s"
	Bytes   = "By"
)

// Put takes one number with the values of its labels.
type Put func(value float64, labels ...string)

// Def is one exported number, or many that differ by their labels.
type Def struct {
	// Prometheus and OpenTelemetry are its names there.
	Prometheus, OpenTelemetry string
	Kind                      Kind
	Unit                      string
	Help                      string
	// Labels are the names of the labels. No value of one comes from a user: there
	// are as many as there are nodes, levels and reasons.
	Labels []string
	// Read puts the numbers of a moment. Nil for a Histogram.
	Read func(*Moment, Put)
	// Waits puts those of a Histogram.
	Waits func(m *Moment, put func(w policy.Waits, labels ...string))
}

// Moment is what is known at one moment.
type Moment struct {
	rywplugin.Status
	sources *Sources
}

// At reads everything there is.
func (s *Sources) At() *Moment { return &Moment{Status: s.Plugin.Status(), sources: s} }

func seconds(d time.Duration) float64 { return d.Seconds() }

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// All returns every number that is exported.
func All() []Def {
	var all []Def
	for _, some := range [][]Def{reads, nodes, writes, travel} {
		all = append(all, some...)
	}
	return all
}

// Point is one number.
type Point struct {
	Labels []string
	Value  float64
}

// Points reads the numbers of a Def that is no Histogram. Each has labels of its own:
// what a program has named alike is added up.
func (d *Def) Points(m *Moment) []Point {
	var all []Point
	at := map[string]int{}
	d.Read(m, func(v float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "?")
		}
		key := strings.Join(labels, "\x00")
		if i, ok := at[key]; ok {
			all[i].Value += v
			return
		}
		at[key] = len(all)
		all = append(all, Point{labels, v})
	})
	return all
}
