package rywprom

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/series"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(running(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	// And promlint does find what is wrong.
	bad := prometheus.NewRegistry()
	bad.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "bad"}))
	if problems, err = testutil.GatherAndLint(bad); err != nil || len(problems) == 0 {
		t.Errorf("have %v, %v, want a problem", problems, err)
	}
}

func TestWhatARunningProgramExports(t *testing.T) {
	have := gather(t, running(t))
	for name, tc := range map[string]struct {
		labels []string
		want   float64
	}{
		"ryw_reads_total":                 {[]string{`role="replica"`}, 2},
		"ryw_token_reads_total":           {[]string{`cluster="0"`}, 2},
		"ryw_token_fallbacks_total":       {[]string{`reason="behind"`}, 1},
		"ryw_read_wait_seconds_count":     {[]string{`role="primary"`}, 1},
		"ryw_node_state":                  {[]string{`state="proven"`}, 2},
		"ryw_replica_gap_bytes":           {nil, 100},
		"ryw_captures_total":              {nil, 1},
		"ryw_missing_tokens_total":        {[]string{`via="http"`}, 1},
		"ryw_http_requests_total":         {nil, 1},
		"ryw_reads_beyond_primary_total":  {nil, 0},
		"ryw_possibly_lost_reads_total":   {nil, 0},
		"ryw_node_position_bytes":         {nil, 1900},
		"ryw_http_late_tokens_total":      {nil, 0},
		"ryw_invalid_tokens_total":        {[]string{`via="query"`}, 0},
		"ryw_http_refused_requests_total": {nil, 0},
	} {
		if v, ok := have.sum(name, tc.labels...); !ok || v != tc.want {
			t.Errorf("%s%v: have %v, %v, want %v", name, tc.labels, v, ok, tc.want)
		}
	}
	if len(have) > 150 {
		t.Errorf("have %d series for two nodes", len(have))
	}
}

// waited is a status with nothing but waits.
type waited struct{ policy.Waits }

func (w waited) Status() rywplugin.Status {
	return rywplugin.Status{Clusters: []rywplugin.ClusterStatus{{Awaited: w.Waits}}}
}

func TestHistogramIsCumulative(t *testing.T) {
	w := policy.Waits{Sum: 3 * time.Second}
	w.Counts[0], w.Counts[1], w.Counts[len(policy.WaitBounds)] = 2, 3, 4
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(New(waited{w}))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "ryw_read_wait_seconds" {
			continue
		}
		for _, m := range f.Metric {
			if !strings.Contains(labelsOf(m), `role="replica"`) {
				continue
			}
			h := m.Histogram
			if h.GetSampleCount() != 9 || h.GetSampleSum() != 3 || h.Bucket[0].GetCumulativeCount() != 2 || h.Bucket[1].GetCumulativeCount() != 5 ||
				h.Bucket[1].GetUpperBound() != 0.001 || h.Bucket[len(h.Bucket)-1].GetCumulativeCount() != 5 {
				t.Errorf("have %s", h)
			}
			return
		}
	}
	t.Error("no histogram")
}

var row = regexp.MustCompile("^\\| `(ryw_[a-z_]+)` \\| `(ryw\\.[a-z_.]+)` \\| ([a-z]+) \\| ([^|]*) \\| (.+) \\|$")

// The table in docs/metrics.md is what is exported, in the same order.
func TestDocumentedSeries(t *testing.T) {
	if _, err := os.Stat("../go.work"); err != nil {
		t.Skip("the page is in the repository, of which this is the module alone")
	}
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		if r := row.FindStringSubmatch(strings.TrimSpace(line)); r != nil {
			rows = append(rows, r)
		}
	}
	all := series.All()
	if len(rows) != len(all) {
		t.Fatalf("have %d rows, want %d", len(rows), len(all))
	}
	for i, d := range all {
		r := rows[i]
		labels := "–"
		if len(d.Labels) > 0 {
			labels = strings.Join(d.Labels, ", ")
		}
		want := "| `" + d.Prometheus + "` | `" + d.OpenTelemetry + "` | " + d.Kind.String() + " | " + labels + " | "
		if !strings.HasPrefix(r[0], want) {
			t.Errorf("have %s\nwant %s", r[0], want)
		}
	}
}
