package rywplugin

import (
	"net/http"
	"regexp"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/adminpage"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Handler returns a page for operators: the freshness table, the last ten minutes of
// each replica, where reads went and why, the settings. The same is had as JSON at
// status.json below it, with ?format=json, or with an Accept header that asks for it.
// The page needs nothing from outside, changes nothing, asks no server anything, and
// shows neither statements nor tokens nor connection strings. It has no access
// control: mount it behind your own, under any prefix.
//
//	mux.Handle("/admin/ryw/", http.StripPrefix("/admin/ryw", ryw.Handler()))
//
// The last minutes are remembered from the first call on, which belongs where the
// application starts; Close ends that. Every call returns the same handler.
func (p *Plugin) Handler() http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		p.router.Remember()
		p.page = adminpage.New(adminSource{p})
		if !p.closed {
			p.page.Start()
		}
	}
	return p.page
}

// closePage ends what Handler began, and what Handler would begin from now on. The
// page asks for the status meanwhile, which takes p.mu.
func (p *Plugin) closePage() {
	p.mu.Lock()
	p.closed = true
	page := p.page
	p.mu.Unlock()
	page.Close()
}

// adminSource is the plugin as its page sees it.
type adminSource struct{ p *Plugin }

// Nodes implements adminpage.Source.
func (s adminSource) Nodes() []adminpage.Node {
	s.p.mu.Lock()
	groups := s.p.groups
	s.p.mu.Unlock()
	all, states := s.p.nodes(groups)
	nodes := make([]adminpage.Node, len(all))
	for i := range all {
		nodes[i] = adminNode(&all[i], states[i])
	}
	return nodes
}

func adminNode(s *NodeStatus, st *watcher.State) adminpage.Node {
	n := adminpage.Node{
		Name: s.Name, Cluster: s.Cluster, Primary: s.Primary, State: adminState(s, st),
		Reason: asWhom.ReplaceAllString(s.Reason, ""), Paused: s.Paused, Gap: s.Gap, Lag: adminpage.Seconds(s.Lag), LagKnown: s.LagKnown,
		Age: adminpage.Seconds(s.Age), Queries: s.Queries, Calls: s.Calls,
		Out: adminpage.Seconds(s.Out), Stuck: s.Stuck,
	}
	if !s.Position.IsZero() {
		n.Position = s.Position.String()
	}
	return n
}

// asWhom is where an error says which user of which database was to be connected.
var asWhom = regexp.MustCompile("failed to connect to `[^`]*`: ")

func adminState(s *NodeStatus, st *watcher.State) adminpage.State {
	switch {
	case st.Failed || st.Incarnation == 0:
		return adminpage.Unknown
	case s.Primary && st.Healthy:
		return adminpage.Serving
	case !s.Primary && !st.Standby:
		return adminpage.Promoted
	case !st.Healthy:
		return adminpage.Unfit
	case !st.Proven:
		return adminpage.Unproven
	case s.Stuck:
		return adminpage.Stuck
	case s.Out > 0:
		return adminpage.OutOfRotation
	case s.Lag >= adminpage.BehindFrom:
		return adminpage.Behind
	case !s.LagKnown && s.Lag == 0:
		return adminpage.Unmeasured
	}
	return adminpage.CaughtUp
}

// Reads implements adminpage.Source.
func (s adminSource) Reads() []adminpage.Reads {
	all := policy.Reasons()
	reads := make([]adminpage.Reads, len(all))
	for i, why := range all {
		reads[i] = adminpage.Reads{Reason: why.String(), Where: whereOf(why), Count: s.p.router.Count(why)}
	}
	return reads
}

// whereOf tells reads that had to go to the primary from those that a replica in a
// better state would have served, and from those that were kept from it.
func whereOf(why policy.Reason) adminpage.Where {
	switch {
	case why == policy.Undecided:
		return adminpage.NotCounted
	case why == policy.ByResolver:
		return adminpage.Unguarded
	case why == policy.ServedStale:
		return adminpage.Stale
	case why == policy.Overloaded:
		return adminpage.Failed
	case why.Fallback():
		return adminpage.FellBack
	case why < policy.ByStrong:
		return adminpage.ToReplica
	}
	return adminpage.ByRule
}

// Writes implements adminpage.Source.
func (s adminSource) Writes() adminpage.Writes {
	st := s.p.Status()
	w := adminpage.Writes{Captures: st.Captures, Failures: st.CaptureFailures, Marks: st.Marks}
	s.p.mu.Lock()
	layer := s.p.layer
	s.p.mu.Unlock()
	if layer != nil {
		waits, total := layer.CaptureCost()
		w.Waits, w.Mean = waits, adminpage.Seconds(total/time.Duration(max(waits, 1)))
	}
	for _, n := range st.Nodes {
		if n.Primary {
			w.Queries += n.Queries
		}
	}
	return w
}

// Decisions implements adminpage.Source.
func (s adminSource) Decisions() []adminpage.Decision {
	now := mono.Now()
	var all []adminpage.Decision
	for _, seen := range s.p.router.Recent() {
		e := explanation(seen.Decision)
		d := adminpage.Decision{
			Ago: adminpage.Seconds(now.Sub(seen.At)), Node: e.Node, Reason: e.Reason.String(), Where: whereOf(e.Reason),
			Level: e.Level.String(), Gap: e.Gap, Age: adminpage.Seconds(e.Age), Waited: adminpage.Seconds(e.Waited),
			Lost: e.PossiblyLost,
		}
		if !e.Want.IsZero() {
			d.Want = e.Want.String()
		}
		if !e.Have.IsZero() {
			d.Have = e.Have.String()
		}
		all = append(all, d)
	}
	return all
}
