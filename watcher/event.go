package watcher

// Condition sums a state up.
type Condition uint8

// The conditions, from worst to best.
const (
	// Unknown nodes were not asked yet.
	Unknown Condition = iota
	// Down nodes did not answer the last question.
	Down
	// Ineligible nodes answer, and may serve no read.
	Ineligible
	// Healthy nodes may serve reads that ask for nothing.
	Healthy
	// Proven nodes may serve token reads as well.
	Proven

	conditions
)

var conditionNames = [conditions]string{"unknown", "down", "ineligible", "healthy", "proven"}

func (c Condition) String() string {
	if c < conditions {
		return conditionNames[c]
	}
	return "unknown"
}

// Conditions returns every condition, for metrics.
func Conditions() []Condition { return []Condition{Unknown, Down, Ineligible, Healthy, Proven} }

// Condition sums the state up.
func (st *State) Condition() Condition {
	switch {
	case st.Failed:
		return Down
	case st.Proven:
		return Proven
	case st.Healthy:
		return Healthy
	case st.At == 0:
		return Unknown
	}
	return Ineligible
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	// StateChanged nodes are in another Condition.
	StateChanged EventKind = iota
	// Promoted clusters have a primary of a later timeline.
	Promoted
	// Refused nodes serve no token reads any more: what their address leads to
	// cannot be proven.
	Refused
)

// Event is something about a node that an operator may want to know.
type Event struct {
	Kind EventKind
	Node *Node
	// From and To are the conditions before and after.
	From, To Condition
	// Reason says why a node is no better; empty if it is Proven.
	Reason string
	// OldTimeline and NewTimeline are those of a promotion.
	OldTimeline, NewTimeline uint32
}

func (g *Group) notify(e Event) {
	if g.cfg.Notify != nil {
		g.cfg.Notify(e)
	}
}

func (g *Group) notifyChange(n *Node, old, st *State) {
	if from, to := old.Condition(), st.Condition(); from != to {
		g.notify(Event{Kind: StateChanged, Node: n, From: from, To: to, Reason: st.Reason})
	}
}
