package adminpage

import (
	_ "embed" // the page
	"html/template"
	"slices"
	"strconv"
	"time"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// view is a snapshot as the template wants it.
type view struct {
	Snapshot
	Title, Nonce, At, Kept, Shown, Since, Began, CaughtUp, BehindFrom string

	Nodes       []nodeRow
	Plots       []plot
	Recent, All sharesText
	Alarms      []mark
	Reads       []readsRow
	Decisions   []decisionRow
	Changes     []changeRow
	Captures    []tile
	Filters     struct{ Where, Node, Reason []option }
}

type nodeRow struct {
	Node
	Label                     string
	Mark                      mark
	GapText, LagText, AgeText string
	OutText                   string
}

type sharesText struct{ Count, Replica, Fallback, Shed string }

type readsRow struct {
	Reads
	Mark mark
}

type decisionRow struct {
	Decision
	When, GapText, WaitedText string
}

type changeRow struct {
	Change
	When string
}

type tile struct{ Name, Value, Note string }

type option struct {
	Value, Text string
	On          bool
}

// mark is a state in colour, shape and words.
type mark struct{ Class, Icon, Text string }

var stateMarks = map[State]mark{
	Serving:       {"good", "plain", string(Serving)},
	CaughtUp:      {"good", "good", string(CaughtUp)},
	Behind:        {"warn", "warn", string(Behind)},
	OutOfRotation: {"warn", "warn", string(OutOfRotation)},
	Stuck:         {"bad", "warn", string(Stuck)},
	Unmeasured:    {"warn", "half", string(Unmeasured)},
	Unproven:      {"warn", "half", string(Unproven)},
	Unfit:         {"bad", "bad", string(Unfit)},
	Promoted:      {"bad", "plain", string(Promoted)},
	Unknown:       {"bad", "unknown", string(Unknown)},
}

var whereMarks = map[Where]mark{
	ToReplica:  {"good", "good", "replica"},
	FellBack:   {"warn", "warn", "primary, fell back"},
	ByRule:     {"plain", "plain", "primary"},
	NotCounted: {"plain", "half", "where it was"},
	Failed:     {"bad", "bad", "nowhere, failed"},
	Stale:      {"bad", "warn", "replica, stale"},
	Unguarded:  {"bad", "unknown", "dbresolver's choice"},
}

func (p *Page) view(now time.Time, keep Filter, nonce string) view {
	s := p.snapshot(now, keep)
	v := view{
		Snapshot: s, Nonce: nonce, At: clock(now), Kept: roughly(now.Sub(p.began)),
		Since: roughly(time.Duration(s.Since)), Began: clock(p.began),
		CaughtUp: string(CaughtUp), BehindFrom: duration(BehindFrom),
		Recent: s.Recent.text(), All: s.All.text(), Title: title(s), Alarms: alarms(s), Captures: captures(s.Writes),
	}
	several := slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Cluster > 0 })
	label := func(name string, cluster int) string {
		if several {
			return name + ", cluster " + strconv.Itoa(cluster)
		}
		return name
	}
	for _, n := range s.Nodes {
		v.Nodes = append(v.Nodes, n.row(label(n.Name, n.Cluster)))
	}
	span := min(max(now.Sub(p.began), time.Minute), Window)
	v.Shown = roughly(span)
	for _, h := range s.History {
		v.Plots = append(v.Plots, plotOf(h, label(h.Node, h.Cluster), span))
	}
	for _, r := range s.Reads {
		if r.Count > 0 {
			v.Reads = append(v.Reads, readsRow{r, whereMarks[r.Where]})
		}
	}
	for _, d := range s.Decisions {
		v.Decisions = append(v.Decisions, d.row(now))
	}
	for _, c := range s.Changes {
		v.Changes = append(v.Changes, changeRow{c, clock(c.At)})
	}
	v.filters(s, keep)
	return v
}

func (n Node) row(label string) nodeRow {
	r := nodeRow{Node: n, Label: label, Mark: stateMarks[n.State]}
	if n.Age > 0 && n.Position != "" {
		r.AgeText = duration(time.Duration(n.Age)) + " ago"
	}
	if n.Out > 0 {
		r.OutText = roughly(time.Duration(n.Out))
	}
	if n.known() {
		r.GapText, r.LagText = size(n.Gap), duration(time.Duration(n.Lag))
		if !n.LagKnown {
			r.LagText = "over " + r.LagText
		}
	}
	return r
}

func (d Decision) row(now time.Time) decisionRow {
	r := decisionRow{Decision: d, When: clock(now.Add(-time.Duration(d.Ago)))}
	if d.Gap > 0 {
		r.GapText = size(d.Gap)
	}
	if d.Waited > 0 {
		r.WaitedText = duration(time.Duration(d.Waited))
	}
	return r
}

func (s Shares) text() sharesText {
	t := sharesText{Count: count(s.Count), Replica: "none", Fallback: "none", Shed: count(s.Shed)}
	if s.Count > 0 {
		t.Replica = percent(s.ReplicaShare)
	}
	if s.Replicas+s.Fallbacks > 0 {
		t.Fallback = percent(s.FallbackShare)
	}
	return t
}

// alarms are what nobody is to overlook.
func alarms(s Snapshot) (all []mark) {
	switch {
	case !s.Mode.Guaranteed:
		all = append(all, mark{"bad", "bad", "Mode " + s.Mode.Name + ": " + s.Mode.Means + "."})
	case !s.Mode.Normal:
		all = append(all, mark{"warn", "warn", "Mode " + s.Mode.Name + ": " + s.Mode.Means + "."})
	}
	if s.Recent.Shed > 0 {
		all = append(all, mark{"bad", "warn", "Too many reads fall back: " + count(s.Recent.Shed) + " were kept from the primary in the last " +
			roughly(time.Duration(s.Since)) + ". They failed or were served stale."})
	}
	return all
}

// title says in the browser's tab whether something is wrong.
func title(s Snapshot) string {
	if !s.Mode.Normal {
		return "Mode " + s.Mode.Name + "! " + replicasText(s.Nodes)
	}
	return replicasText(s.Nodes)
}

func replicasText(nodes []Node) string {
	replicas, good := 0, 0
	for _, n := range nodes {
		if !n.Primary {
			replicas++
			if n.State == CaughtUp {
				good++
			}
		}
	}
	if replicas == 0 {
		return "gorm-ryw"
	}
	return strconv.Itoa(good) + " of " + strconv.Itoa(replicas) + " replicas caught up: gorm-ryw"
}

func captures(w Writes) []tile {
	wait := tile{"Waited for a capture", "0", "the position came with each commit"}
	if w.Waits > 0 {
		wait.Value, wait.Note = duration(time.Duration(w.Mean)), "on average, by "+count(w.Waits)+" writes"
	}
	return []tile{
		{"Writes captured", count(w.Captures), ""},
		wait,
		{"Captures failed", count(w.Failures), "each left a mark"},
		{"Writes marked instead", count(w.Marks), "the next read asks"},
		{"Questions to primaries", count(w.Queries), "for captures and all else; several may share one"},
	}
}

// filters offers what there is to choose from.
func (v *view) filters(s Snapshot, keep Filter) {
	options := func(all string, values []string, on string) []option {
		if on != "" && !slices.Contains(values, on) {
			values = append(values, on)
		}
		os := []option{{"", all, on == ""}}
		for _, value := range values {
			os = append(os, option{value, value, value == on})
		}
		return os
	}
	var reasons []string
	for _, r := range s.Reads {
		if r.Count > 0 {
			reasons = append(reasons, r.Reason)
		}
	}
	nodes := []string{"primary"}
	for _, n := range s.Nodes {
		if !n.Primary && !slices.Contains(nodes, n.Name) {
			nodes = append(nodes, n.Name)
		}
	}
	v.Filters.Where = options("anywhere", []string{string(ToReplica), string(FellBack), string(ByRule), string(Failed), string(Stale), string(Unguarded)}, keep.Where)
	v.Filters.Node = options("any", nodes, keep.Node)
	v.Filters.Reason = options("any", reasons, keep.Reason)
}
