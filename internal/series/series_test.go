package series

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

type fixed rywplugin.Status

func (f fixed) Status() rywplugin.Status { return rywplugin.Status(f) }

type stats rywhttp.Stats

func (s stats) Stats() rywhttp.Stats { return rywhttp.Stats(s) }

type counts [2]int64

func (c counts) Counts() (missing, invalid int64) { return c[0], c[1] }

// some is a status with a number of its own everywhere.
var some = fixed{
	Nodes: []rywplugin.NodeStatus{
		{
			Name: "p:5432", Primary: true, Condition: watcher.Proven, Position: token.Position{Timeline: 1, LSN: 1000}, Age: time.Second,
			Queries: 1, Calls: 2, Reads: []policy.ReadCount{{Level: policy.Strong, Reason: policy.ByStrong, Count: 3}},
		},
		{
			Name: "r:5432", Condition: watcher.Healthy, Position: token.Position{Timeline: 1, LSN: 900}, Age: 2 * time.Second, Gap: 100,
			Lag: 3 * time.Second, LagKnown: true, Paused: true, Out: 32 * time.Second, Stuck: true, Queries: 4, Calls: 5,
			Reads: []policy.ReadCount{{Level: policy.ReadYourWrites, Reason: policy.CaughtUp, Count: 6}},
		},
		{Name: "down:5432", Condition: watcher.Down, Queries: 7, Calls: 8},
		{Name: "old:5432", Condition: watcher.Healthy, Position: token.Position{Timeline: 9, LSN: 900}, Age: time.Second},
	},
	Clusters: []rywplugin.ClusterStatus{{
		TokenReads: 9, Fallbacks: map[policy.Reason]int64{policy.Behind: 10, policy.NoneProven: 0},
		OtherFallbacks: map[policy.Reason]int64{policy.NoneHealthy: 33}, FallingBack: 34, Overloaded: 35, ServedStale: 36,
		Awaited:      policy.Waits{Sum: time.Second},
		PossiblyLost: 11, BeyondPrimary: 12, MarksResolved: 13,
	}},
	Tuning:   rywplugin.Tuning{Mode: policy.PrimaryOnly},
	Captures: 14, SharedCaptures: 15, CaptureFailures: 16, Marks: 17, ReadMarks: 18, InvalidTokens: 19,
}

// read returns the numbers of a Def as "name{values}".
func read(s *Sources) map[string]float64 {
	all := map[string]float64{}
	for _, d := range All() {
		if d.Kind == Histogram {
			d.Waits(s.At(), func(w policy.Waits, labels ...string) {
				all[d.Prometheus+"{"+strings.Join(labels, ",")+"}"] = w.Sum.Seconds()
			})
			continue
		}
		for _, p := range d.Points(s.At()) {
			all[d.Prometheus+"{"+strings.Join(p.Labels, ",")+"}"] = p.Value
		}
	}
	return all
}

func TestEveryNumber(t *testing.T) {
	h := stats{Requests: 20, Missing: 21, Invalid: 22, Refused: 23, Sent: 24, Ahead: 25, Late: 26, StoreFailed: 27}
	have := read(New(some, []Option{HTTP(h), HTTP(h), Via("jobs", counts{28, 29}), Via("query", counts{30, 31}), Client(&rywhttp.Transport{})}))
	want := map[string]float64{
		"ryw_reads_total{0,p:5432,primary,strong,strong}":              3,
		"ryw_reads_total{0,r:5432,replica,read_your_writes,caught_up}": 6,
		"ryw_token_reads_total{0}":                                     9,
		"ryw_token_fallbacks_total{0,behind}":                          10,
		"ryw_token_fallbacks_total{0,none_proven}":                     0,
		"ryw_fallbacks_under_way{0}":                                   34,
		"ryw_shed_reads_total{0,overloaded}":                           35,
		"ryw_shed_reads_total{0,served_stale}":                         36,
		"ryw_mode{normal}":                                             0,
		"ryw_mode{primary_only}":                                       1,
		"ryw_mode{plain_resolver}":                                     0,
		"ryw_read_wait_seconds{0,replica}":                             1,
		"ryw_read_wait_seconds{0,primary}":                             0,
		"ryw_possibly_lost_reads_total{0}":                             11,
		"ryw_reads_beyond_primary_total{0}":                            12,
		"ryw_node_position_bytes{0,p:5432,primary}":                    1000,
		"ryw_node_position_bytes{0,r:5432,replica}":                    900,
		"ryw_node_position_bytes{0,old:5432,replica}":                  900,
		"ryw_node_timeline{0,p:5432,primary}":                          1,
		"ryw_node_timeline{0,r:5432,replica}":                          1,
		"ryw_node_timeline{0,old:5432,replica}":                        9,
		"ryw_node_sample_age_seconds{0,p:5432,primary}":                1,
		"ryw_node_sample_age_seconds{0,r:5432,replica}":                2,
		"ryw_node_sample_age_seconds{0,old:5432,replica}":              1,
		"ryw_replica_gap_bytes{0,r:5432,replica}":                      100,
		"ryw_replica_lag_seconds{0,r:5432,replica}":                    3,
		"ryw_replica_replay_paused{0,r:5432,replica}":                  1,
		"ryw_replica_replay_paused{0,old:5432,replica}":                0,
		"ryw_probes_total{0,p:5432,primary}":                           1,
		"ryw_probes_total{0,r:5432,replica}":                           4,
		"ryw_probes_total{0,down:5432,replica}":                        7,
		"ryw_probes_total{0,old:5432,replica}":                         0,
		"ryw_probe_answers_total{0,p:5432,primary}":                    2,
		"ryw_probe_answers_total{0,r:5432,replica}":                    5,
		"ryw_probe_answers_total{0,down:5432,replica}":                 8,
		"ryw_probe_answers_total{0,old:5432,replica}":                  0,
		"ryw_captures_total{}":                                         14,
		"ryw_shared_captures_total{}":                                  15,
		"ryw_capture_failures_total{}":                                 16,
		"ryw_marks_set_total{write}":                                   17,
		"ryw_marks_set_total{read}":                                    18,
		"ryw_marks_resolved_total{0}":                                  13,
		"ryw_missing_tokens_total{http}":                               42,
		"ryw_missing_tokens_total{jobs}":                               28,
		"ryw_missing_tokens_total{query}":                              30,
		"ryw_missing_tokens_total{http_client}":                        0,
		"ryw_invalid_tokens_total{query}":                              19 + 31,
		"ryw_invalid_tokens_total{http}":                               44,
		"ryw_invalid_tokens_total{jobs}":                               29,
		"ryw_invalid_tokens_total{http_client}":                        0,
		"ryw_http_requests_total{}":                                    40,
		"ryw_http_refused_requests_total{}":                            46,
		"ryw_http_tokens_sent_total{}":                                 48,
		"ryw_http_marks_ahead_total{}":                                 50,
		"ryw_http_late_tokens_total{}":                                 52,
		"ryw_http_store_failures_total{}":                              54,
	}
	for _, n := range some.Nodes {
		for _, c := range watcher.Conditions() {
			want["ryw_node_state{0,"+n.Name+","+role(n.Primary)+","+c.String()+"}"] = truth(c == n.Condition)
		}
	}
	for _, why := range policy.Reasons() {
		if why.Fallback() {
			want["ryw_other_fallbacks_total{0,"+why.Label()+"}"] = float64(some.Clusters[0].OtherFallbacks[why])
		}
	}
	for _, n := range some.Nodes[1:] {
		want["ryw_replica_out_of_rotation_seconds{0,"+n.Name+",replica}"] = n.Out.Seconds()
		want["ryw_replica_stuck{0,"+n.Name+",replica}"] = truth(n.Stuck)
	}
	for name, v := range want {
		if got, ok := have[name]; !ok || got != v {
			t.Errorf("%s: have %v, %v, want %v", name, got, ok, v)
		}
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: not expected", name)
		}
	}
}

// Without a middleware there is nothing to be said of HTTP.
func TestNothingOfWhatIsNotThere(t *testing.T) {
	for name := range read(New(some, nil)) {
		if strings.Contains(name, "http") || strings.Contains(name, "missing") {
			t.Errorf("%s: is there", name)
		}
	}
}

func TestNamesFollowTheirConventions(t *testing.T) {
	prometheus, otel := map[string]bool{}, map[string]bool{}
	promName, otelName := regexp.MustCompile(`^ryw(_[a-z]+)+$`), regexp.MustCompile(`^ryw(\.[a-z_]+)+$`)
	for _, d := range All() {
		if !promName.MatchString(d.Prometheus) || !otelName.MatchString(d.OpenTelemetry) || prometheus[d.Prometheus] || otel[d.OpenTelemetry] {
			t.Errorf("%s, %s: bad or twice", d.Prometheus, d.OpenTelemetry)
		}
		prometheus[d.Prometheus], otel[d.OpenTelemetry] = true, true
		total := strings.HasSuffix(d.Prometheus, "_total")
		if total != (d.Kind == Counter) || d.Unit == "" || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: %s in %q, %q", d.Prometheus, d.Kind, d.Unit, d.Help)
		}
		if unit := map[string]string{Seconds: "_seconds", Bytes: "_bytes"}[d.Unit]; !strings.HasSuffix(d.Prometheus, unit) {
			t.Errorf("%s: want it to end in %s", d.Prometheus, unit)
		}
		if strings.Contains(d.OpenTelemetry, "total") || strings.Contains(d.OpenTelemetry, "seconds") || strings.Contains(d.OpenTelemetry, "bytes") {
			t.Errorf("%s: unit or kind in the name", d.OpenTelemetry)
		}
		if slices.ContainsFunc(d.Labels, func(l string) bool { return !promName.MatchString("ryw_" + l) }) {
			t.Errorf("%s: labels %q", d.Prometheus, d.Labels)
		}
	}
}
