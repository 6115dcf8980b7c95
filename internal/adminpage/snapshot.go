package adminpage

import (
	"slices"
	"time"
)

// Snapshot is all that the page tells: the JSON twin's value.
type Snapshot struct {
	At time.Time `json:"at"`
	// Began is when the page began to remember.
	Began time.Time `json:"began"`
	// Since is how far back Recent in Reads and Shares reaches.
	Since     Seconds    `json:"recent_seconds"`
	Mode      Mode       `json:"mode"`
	Nodes     []Node     `json:"nodes"`
	History   []Series   `json:"history"`
	Recent    Shares     `json:"recent"`
	All       Shares     `json:"all"`
	Reads     []Reads    `json:"reads"`
	Writes    Writes     `json:"writes"`
	Changes   []Change   `json:"changes"` // newest first
	Decisions []Decision `json:"decisions"`
	Settings  []Setting  `json:"settings"`
}

// Series is what a replica's last minutes were, oldest first.
type Series struct {
	Node    string    `json:"node"`
	Cluster int       `json:"cluster"`
	Points  []Reading `json:"points"`
}

// Reading is a replica's gap and lag at one time; neither if it is not known.
type Reading struct {
	Ago   Seconds `json:"ago_seconds"`
	Known bool    `json:"known"`
	Gap   uint64  `json:"gap_bytes"`
	Lag   Seconds `json:"lag_seconds"`
}

// Shares are how many reads there were, and what part of them replicas served.
type Shares struct {
	Count     int64 `json:"reads"`
	Replicas  int64 `json:"replica_reads"`
	Fallbacks int64 `json:"fallbacks"`
	// Shed are those that were kept from the primary: failed or served stale. They
	// are in neither of the shares.
	Shed int64 `json:"shed"`
	// ReplicaShare is of all reads, FallbackShare of those that replicas have served
	// or might have. Zero if there were none.
	ReplicaShare  float64 `json:"replica_share"`
	FallbackShare float64 `json:"fallback_share"`
}

// recently is how far back the shares of "recent" reads reach.
const recently = 5 * time.Minute

// snapshot looks at everything, with the decisions that keep accepts.
func (p *Page) snapshot(now time.Time, keep Filter) Snapshot {
	past, changes := p.memory()
	slices.Reverse(changes)
	s := Snapshot{
		At: now, Began: p.began, Mode: p.src.Mode(), Nodes: p.src.Nodes(), Reads: p.src.Reads(), Writes: p.src.Writes(),
		Changes: changes, Decisions: keep.decisions(p.src.Decisions()), Settings: p.src.Settings(),
	}
	s.Since = Seconds(compare(s.Reads, past, now))
	s.Recent = share(s.Reads, func(r Reads) int64 { return r.Recent })
	s.All = share(s.Reads, func(r Reads) int64 { return r.Count })
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !n.Primary {
			s.History = append(s.History, series(n, past, now))
		}
	}
	return s
}

// compare sets Recent by the oldest counters that are recent, and returns how old
// they are.
func compare(reads []Reads, past []point, now time.Time) time.Duration {
	i := slices.IndexFunc(past, func(p point) bool { return now.Sub(p.at) <= recently })
	if i < 0 {
		return 0
	}
	for j, r := range reads {
		if then := past[i].reads; j < len(then) {
			reads[j].Recent = r.Count - then[j].Count
		}
	}
	return now.Sub(past[i].at)
}

func share(reads []Reads, count func(Reads) int64) Shares {
	var s Shares
	for _, r := range reads {
		n := count(r)
		switch r.Where {
		case ToReplica:
			s.Replicas += n
		case FellBack:
			s.Fallbacks += n
		case Failed, Stale:
			s.Shed += n
		case NotCounted:
			continue
		}
		s.Count += n
	}
	s.ReplicaShare = part(s.Replicas, s.Count)
	s.FallbackShare = part(s.Fallbacks, s.Replicas+s.Fallbacks)
	return s
}

func part(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func series(of *Node, past []point, now time.Time) Series {
	s := Series{Node: of.Name, Cluster: of.Cluster, Points: make([]Reading, 0, len(past))}
	for _, p := range past {
		r := Reading{Ago: Seconds(now.Sub(p.at))}
		i := slices.IndexFunc(p.nodes, func(n Node) bool { return n.place() == of.place() && !n.Primary })
		if i >= 0 && p.nodes[i].known() {
			r.Known, r.Gap, r.Lag = true, p.nodes[i].Gap, p.nodes[i].Lag
		}
		s.Points = append(s.Points, r)
	}
	return s
}

// Filter says which decisions are wanted; empty fields want all.
type Filter struct{ Where, Node, Reason string }

// shown is how many decisions are shown at most.
const shown = 25

func (f Filter) decisions(all []Decision) []Decision {
	some := []Decision{}
	for _, d := range all {
		ok := func(want, have string) bool { return want == "" || want == have }
		if ok(f.Where, string(d.Where)) && ok(f.Node, d.Node) && ok(f.Reason, d.Reason) && len(some) < shown {
			some = append(some, d)
		}
	}
	return some
}
