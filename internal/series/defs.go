package series

import (
	"strconv"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

var (
	ofCluster = []string{"cluster"}
	ofNode    = []string{"cluster", "node", "role"}
)

var modes = [...]string{policy.Normal: "normal", policy.PrimaryOnly: "primary_only", policy.PlainResolver: "plain_resolver"}

func cluster(i int) string { return strconv.Itoa(i) }

func role(primary bool) string {
	if primary {
		return "primary"
	}
	return "replica"
}

// eachNode reads a number that every node has, or some.
func eachNode(read func(n *rywplugin.NodeStatus) (float64, bool)) func(*Moment, Put) {
	return func(m *Moment, put Put) {
		for i := range m.Nodes {
			n := &m.Nodes[i]
			if v, ok := read(n); ok {
				put(v, cluster(n.Cluster), n.Name, role(n.Primary))
			}
		}
	}
}

// eachCluster reads a number that every cluster has.
func eachCluster(read func(c *rywplugin.ClusterStatus) int64) func(*Moment, Put) {
	return func(m *Moment, put Put) {
		for i := range m.Clusters {
			put(float64(read(&m.Clusters[i])), cluster(i))
		}
	}
}

// one reads a number without labels.
func one(read func(m *Moment) int64) func(*Moment, Put) {
	return func(m *Moment, put Put) { put(float64(read(m))) }
}

var reads = []Def{
	{
		Prometheus: "ryw_reads_total", OpenTelemetry: "ryw.reads", Kind: Counter, Unit: "{read}",
		Help:   "Routed reads by the node they went to, what they asked for and why they went there.",
		Labels: []string{"cluster", "node", "role", "hint", "reason"},
		Read: func(m *Moment, put Put) {
			for _, n := range m.Nodes {
				for _, r := range n.Reads {
					put(float64(r.Count), cluster(n.Cluster), n.Name, role(n.Primary), r.Level.Label(), r.Reason.Label())
				}
			}
		},
	},
	{
		Prometheus: "ryw_token_reads_total", OpenTelemetry: "ryw.token.reads", Kind: Counter, Unit: "{read}",
		Help:   "Reads that had something to see, by token or session, and replicas that might have it.",
		Labels: ofCluster,
		Read:   eachCluster(func(c *rywplugin.ClusterStatus) int64 { return c.TokenReads }),
	},
	{
		Prometheus: "ryw_token_fallbacks_total", OpenTelemetry: "ryw.token.fallbacks", Kind: Counter, Unit: "{read}",
		Help:   "Token reads that the primary served because no replica qualified.",
		Labels: []string{"cluster", "reason"},
		Read: func(m *Moment, put Put) {
			for i, c := range m.Clusters {
				for _, why := range policy.Reasons() {
					if n, ok := c.Fallbacks[why]; ok {
						put(float64(n), cluster(i), why.Label())
					}
				}
			}
		},
	},
	{
		Prometheus: "ryw_other_fallbacks_total", OpenTelemetry: "ryw.other.fallbacks", Kind: Counter, Unit: "{read}",
		Help:   "Reads with nothing to see that the primary served because no replica qualified.",
		Labels: []string{"cluster", "reason"},
		Read: func(m *Moment, put Put) {
			for i, c := range m.Clusters {
				for _, why := range policy.Reasons() {
					if why.Fallback() {
						put(float64(c.OtherFallbacks[why]), cluster(i), why.Label())
					}
				}
			}
		},
	},
	{
		Prometheus: "ryw_fallbacks_under_way", OpenTelemetry: "ryw.fallbacks.active", Kind: Gauge, Unit: "{read}",
		Help:   "Reads under way that fell back to the primary. They are counted where Fallback.Concurrent is set.",
		Labels: ofCluster,
		Read:   eachCluster(func(c *rywplugin.ClusterStatus) int64 { return int64(c.FallingBack) }),
	},
	{
		Prometheus: "ryw_shed_reads_total", OpenTelemetry: "ryw.reads.shed", Kind: Counter, Unit: "{read}",
		Help:   "Reads that a cap kept from the primary, by what became of them: overloaded (they failed) or served_stale.",
		Labels: []string{"cluster", "reason"},
		Read: func(m *Moment, put Put) {
			for i, c := range m.Clusters {
				put(float64(c.Overloaded), cluster(i), policy.Overloaded.Label())
				put(float64(c.ServedStale), cluster(i), policy.ServedStale.Label())
			}
		},
	},
	{
		Prometheus: "ryw_mode", OpenTelemetry: "ryw.mode", Kind: Gauge, Unit: "1",
		Help:   "1 for the mode in force, 0 for the others: normal, primary_only, plain_resolver.",
		Labels: []string{"mode"},
		Read: func(m *Moment, put Put) {
			for mode, label := range modes {
				put(truth(m.Tuning.Mode == policy.Mode(mode)), label)
			}
		},
	},
	{
		Prometheus: "ryw_read_wait_seconds", OpenTelemetry: "ryw.read.wait.duration", Kind: Histogram, Unit: Seconds,
		Help:   "Time that reads waited for a replica, by who served them in the end. Reads that did not wait are not in it.",
		Labels: []string{"cluster", "role"},
		Waits: func(m *Moment, put func(policy.Waits, ...string)) {
			for i, c := range m.Clusters {
				put(c.Awaited, cluster(i), role(false))
				put(c.InVain, cluster(i), role(true))
			}
		},
	},
	{
		Prometheus: "ryw_possibly_lost_reads_total", OpenTelemetry: "ryw.reads.possibly_lost", Kind: Counter, Unit: "{read}",
		Help:   "Reads under sessions that hold a write or read which may not have survived a failover.",
		Labels: ofCluster,
		Read:   eachCluster(func(c *rywplugin.ClusterStatus) int64 { return c.PossiblyLost }),
	},
	{
		Prometheus: "ryw_reads_beyond_primary_total", OpenTelemetry: "ryw.reads.beyond_primary", Kind: Counter, Unit: "{read}",
		Help:   "Reads under a position that the primary does not have: what it stood for was lost, or the token is forged.",
		Labels: ofCluster,
		Read:   eachCluster(func(c *rywplugin.ClusterStatus) int64 { return c.BeyondPrimary }),
	},
}

var nodes = []Def{
	{
		Prometheus: "ryw_node_state", OpenTelemetry: "ryw.node.state", Kind: Gauge, Unit: "1",
		Help:   "1 for the state a node is in, 0 for the others: unknown, down, ineligible, healthy, proven.",
		Labels: []string{"cluster", "node", "role", "state"},
		Read: func(m *Moment, put Put) {
			for _, n := range m.Nodes {
				for _, c := range watcher.Conditions() {
					put(truth(n.Condition == c), cluster(n.Cluster), n.Name, role(n.Primary), c.String())
				}
			}
		},
	},
	{
		Prometheus: "ryw_node_position_bytes", OpenTelemetry: "ryw.node.position", Kind: Gauge, Unit: Bytes,
		Help:   "WAL position of a node as it is known: insert position of a primary, replay position of a replica.",
		Labels: ofNode,
		Read: eachNode(func(n *rywplugin.NodeStatus) (float64, bool) {
			return float64(n.Position.LSN), !n.Position.IsZero()
		}),
	},
	{
		Prometheus: "ryw_node_timeline", OpenTelemetry: "ryw.node.timeline", Kind: Gauge, Unit: "1",
		Help:   "Timeline of a node as it is known.",
		Labels: ofNode,
		Read: eachNode(func(n *rywplugin.NodeStatus) (float64, bool) {
			return float64(n.Position.Timeline), !n.Position.IsZero()
		}),
	},
	{
		Prometheus: "ryw_node_sample_age_seconds", OpenTelemetry: "ryw.node.sample.age", Kind: Gauge, Unit: Seconds,
		Help:   "How long ago a node was asked for the position that is known.",
		Labels: ofNode,
		Read:   eachNode(func(n *rywplugin.NodeStatus) (float64, bool) { return seconds(n.Age), n.Age > 0 }),
	},
	{
		Prometheus: "ryw_replica_gap_bytes", OpenTelemetry: "ryw.replica.gap", Kind: Gauge, Unit: Bytes,
		Help:   "Bytes of WAL that a replica is behind its primary. Absent where the two cannot be compared.",
		Labels: ofNode,
		Read: func(m *Moment, put Put) {
			timelines := map[int]uint32{}
			for _, n := range m.Nodes {
				if n.Primary {
					timelines[n.Cluster] = n.Position.Timeline
				}
			}
			for _, n := range m.Nodes {
				if !n.Primary && !n.Position.IsZero() && n.Position.Timeline == timelines[n.Cluster] {
					put(float64(n.Gap), cluster(n.Cluster), n.Name, role(false))
				}
			}
		},
	},
	{
		Prometheus: "ryw_replica_lag_seconds", OpenTelemetry: "ryw.replica.lag", Kind: Gauge, Unit: Seconds,
		Help:   "How long before a replica was last asked the primary was where the replica is. Zero if it has all there is.",
		Labels: ofNode,
		Read: eachNode(func(n *rywplugin.NodeStatus) (float64, bool) {
			return seconds(n.Lag), !n.Primary && (n.LagKnown || n.Lag > 0)
		}),
	},
	{
		Prometheus: "ryw_replica_replay_paused", OpenTelemetry: "ryw.replica.replay.paused", Kind: Gauge, Unit: "1",
		Help:   "1 if replay is paused on a replica.",
		Labels: ofNode,
		Read: eachNode(func(n *rywplugin.NodeStatus) (float64, bool) {
			return truth(n.Paused), !n.Primary && !n.Position.IsZero()
		}),
	},
	{
		Prometheus: "ryw_replica_out_of_rotation_seconds", OpenTelemetry: "ryw.replica.rotation.out", Kind: Gauge, Unit: Seconds,
		Help:   "How long a replica has been out of rotation for its lag. Zero if it is in.",
		Labels: ofNode,
		Read:   eachNode(func(n *rywplugin.NodeStatus) (float64, bool) { return seconds(n.Out), !n.Primary }),
	},
	{
		Prometheus: "ryw_replica_stuck", OpenTelemetry: "ryw.replica.stuck", Kind: Gauge, Unit: "1",
		Help:   "1 if a replica has been out of rotation for longer than Rotation.StuckAfter.",
		Labels: ofNode,
		Read:   eachNode(func(n *rywplugin.NodeStatus) (float64, bool) { return truth(n.Stuck), !n.Primary }),
	},
	{
		Prometheus: "ryw_probes_total", OpenTelemetry: "ryw.probes", Kind: Counter, Unit: "{query}",
		Help:   "Position queries that the watcher sent to a node, captures on its connections included.",
		Labels: ofNode,
		Read:   eachNode(func(n *rywplugin.NodeStatus) (float64, bool) { return float64(n.Queries), true }),
	},
	{
		Prometheus: "ryw_probe_answers_total", OpenTelemetry: "ryw.probe.answers", Kind: Counter, Unit: "{question}",
		Help:   "Questions for a node's position that those queries answered: writes, reads, the watcher itself.",
		Labels: ofNode,
		Read:   eachNode(func(n *rywplugin.NodeStatus) (float64, bool) { return float64(n.Calls), true }),
	},
}

var writes = []Def{
	{
		Prometheus: "ryw_captures_total", OpenTelemetry: "ryw.captures", Kind: Counter, Unit: "{write}",
		Help: "Writes whose position was captured.",
		Read: one(func(m *Moment) int64 { return m.Captures }),
	},
	{
		Prometheus: "ryw_shared_captures_total", OpenTelemetry: "ryw.captures.shared", Kind: Counter, Unit: "{write}",
		Help: "Those of them that shared another's position query.",
		Read: one(func(m *Moment) int64 { return m.SharedCaptures }),
	},
	{
		Prometheus: "ryw_capture_failures_total", OpenTelemetry: "ryw.capture.failures", Kind: Counter, Unit: "{write}",
		Help: "Writes whose position was asked for and could not be had. They are marked.",
		Read: one(func(m *Moment) int64 { return m.CaptureFailures }),
	},
	{
		Prometheus: "ryw_marks_set_total", OpenTelemetry: "ryw.marks.set", Kind: Counter, Unit: "{mark}",
		Help:   "Writes, and reads of the primary, that left a mark in place of a position.",
		Labels: []string{"kind"},
		Read: func(m *Moment, put Put) {
			put(float64(m.Marks), "write")
			put(float64(m.ReadMarks), "read")
		},
	},
	{
		Prometheus: "ryw_marks_resolved_total", OpenTelemetry: "ryw.marks.resolved", Kind: Counter, Unit: "{read}",
		Help:   "Reads that found the position behind a mark.",
		Labels: ofCluster,
		Read:   eachCluster(func(c *rywplugin.ClusterStatus) int64 { return c.MarksResolved }),
	},
}

var travel = []Def{
	{
		Prometheus: "ryw_missing_tokens_total", OpenTelemetry: "ryw.tokens.missing", Kind: Counter, Unit: "{token}",
		Help:   "Requests and messages that came without a token, by what they came with.",
		Labels: []string{"via"},
		Read: func(m *Moment, put Put) {
			if len(m.sources.middlewares) > 0 {
				put(float64(m.sources.http().Missing), "http")
			}
			for _, c := range m.sources.carried() {
				put(float64(c.missing), c.via)
			}
		},
	},
	{
		Prometheus: "ryw_invalid_tokens_total", OpenTelemetry: "ryw.tokens.invalid", Kind: Counter, Unit: "{token}",
		Help:   "Tokens that could not be read or were not signed by whom they should be, by what they came with.",
		Labels: []string{"via"},
		Read: func(m *Moment, put Put) {
			put(float64(m.InvalidTokens), "query")
			if len(m.sources.middlewares) > 0 {
				put(float64(m.sources.http().Invalid), "http")
			}
			for _, c := range m.sources.carried() {
				put(float64(c.invalid), c.via)
			}
		},
	},
	http("ryw_http_requests_total", "ryw.http.requests", "{request}", "Requests that passed the middleware.",
		func(m *Moment) int64 { return m.sources.http().Requests }),
	http("ryw_http_refused_requests_total", "ryw.http.requests.refused", "{request}", "Requests that the middleware refused for their token.",
		func(m *Moment) int64 { return m.sources.http().Refused }),
	http("ryw_http_tokens_sent_total", "ryw.http.tokens.sent", "{response}", "Responses that had a token written back.",
		func(m *Moment) int64 { return m.sources.http().Sent }),
	http("ryw_http_marks_ahead_total", "ryw.http.marks.ahead", "{response}", "Responses that left while a transaction was open, with a mark for it.",
		func(m *Moment) int64 { return m.sources.http().Ahead }),
	http("ryw_http_late_tokens_total", "ryw.http.tokens.late", "{request}", "Requests that wrote after their headers had left: the client may miss that write.",
		func(m *Moment) int64 { return m.sources.http().Late }),
	http("ryw_http_store_failures_total", "ryw.http.store.failures", "{request}", "Times that the store of tokens could not be asked.",
		func(m *Moment) int64 { return m.sources.http().StoreFailed }),
}

// http is a number of the middlewares, absent without one.
func http(prometheus, otel, unit, help string, read func(*Moment) int64) Def {
	return Def{
		Prometheus: prometheus, OpenTelemetry: otel, Kind: Counter, Unit: unit, Help: help,
		Read: func(m *Moment, put Put) {
			if len(m.sources.middlewares) > 0 {
				put(float64(read(m)))
			}
		},
	}
}
