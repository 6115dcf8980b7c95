package adminpage

import "time"

// Source tells what there is to show. All methods are called from several
// goroutines, and must ask no server.
type Source interface {
	// Nodes returns the servers, primaries before their replicas.
	Nodes() []Node
	// Reads returns how many reads went where for each reason, in an order that
	// does not change.
	Reads() []Reads
	// Mode returns who decides where reads go at the moment.
	Mode() Mode
	// Writes returns the captures so far.
	Writes() Writes
	// Decisions returns recent ones, newest first.
	Decisions() []Decision
	// Settings returns what the plugin goes by at the moment.
	Settings() []Setting
}

// State is what a server is good for, in a word or two.
type State string

// The states of a server.
const (
	// Serving is a primary that answers as one.
	Serving State = "primary"
	// CaughtUp is a replica that was at most BehindFrom behind when it was asked.
	CaughtUp State = "caught up"
	// Behind is one that was further behind.
	Behind State = "behind"
	// OutOfRotation is one that was too far behind to serve reads that ask for nothing.
	OutOfRotation State = "out of rotation"
	// Stuck is one that has been out for so long that somebody should look.
	Stuck State = "stuck"
	// Unmeasured is one that serves, and how far behind it is nobody can tell: the
	// primary does not answer.
	Unmeasured State = "not measured"
	// Unproven is a replica whose position cannot be relied on: it serves only reads
	// that ask for nothing.
	Unproven State = "unproven"
	// Unfit is a replica that answers and may not serve.
	Unfit State = "unfit"
	// Promoted is a replica that is none: it takes writes by itself.
	Promoted State = "promoted"
	// Unknown is a server that does not answer, or was not asked yet.
	Unknown State = "unknown"
)

// BehindFrom is the lag from which on a replica is called behind. Less is no more
// than what passes between two questions.
const BehindFrom = 100 * time.Millisecond

// Node is one server at one moment.
type Node struct {
	Name    string `json:"name"`
	Cluster int    `json:"cluster"`
	Primary bool   `json:"primary"`
	State   State  `json:"state"`
	// Reason says why it may not serve, or not everything; empty otherwise.
	Reason string `json:"reason,omitempty"`
	Paused bool   `json:"paused"`
	// Position is empty if it is not known.
	Position string `json:"position,omitempty"`
	Gap      uint64 `json:"gap_bytes"`
	// Lag is a lower bound unless LagKnown.
	Lag      Seconds `json:"lag_seconds"`
	LagKnown bool    `json:"lag_known"`
	// Out is how long it has been out of rotation; zero: it is in.
	Out   Seconds `json:"out_of_rotation_seconds"`
	Stuck bool    `json:"stuck"`
	// Age is how old all this is; zero if never asked.
	Age     Seconds `json:"age_seconds"`
	Queries int64   `json:"queries"`
	Calls   int64   `json:"calls"`
}

// known says that gap and lag mean something.
func (n *Node) known() bool {
	return !n.Primary && n.Position != "" && (n.LagKnown || n.Lag > 0)
}

// Seconds is a duration that is a number of seconds in JSON.
type Seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return appendSeconds(nil, s), nil }

// Reads is how many reads went to one kind of server for one reason.
type Reads struct {
	Reason string `json:"reason"`
	Where  Where  `json:"where"`
	Count  int64  `json:"count"`
	// Recent is how many of them in the window that the snapshot tells of.
	Recent int64 `json:"recent"`
}

// Where tells replica reads from reads that fell back to the primary and from those
// that belonged there.
type Where string

// Where reads go.
const (
	ToReplica  Where = "replica"
	FellBack   Where = "fallback"
	ByRule     Where = "primary"
	NotCounted Where = "not routed"
	// Failed and Stale are reads that fell back and that a cap kept from the primary:
	// they failed, or a replica served them outside of the guarantee.
	Failed Where = "failed"
	Stale  Where = "stale"
	// Unguarded are reads that went where dbresolver sent them.
	Unguarded Where = "unguarded"
)

// Mode is who decides where reads go.
type Mode struct {
	Name  string `json:"name"`
	Means string `json:"means"`
	// Normal says that nothing is out of the ordinary, Guaranteed that reads see
	// what they must.
	Normal     bool `json:"normal"`
	Guaranteed bool `json:"guaranteed"`
}

// Writes is what captures have cost.
type Writes struct {
	Captures int64 `json:"captures"`
	Failures int64 `json:"failures"`
	Marks    int64 `json:"marks"`
	// Waits is how many writes have waited for a position after their commit, Mean for
	// how long. Where the position comes with the commit there is no wait.
	Waits int64   `json:"waits"`
	Mean  Seconds `json:"mean_wait_seconds"`
	// Queries is how many position queries primaries were sent, for captures and for
	// everything else.
	Queries int64 `json:"primary_queries"`
}

// Decision is where one read went.
type Decision struct {
	Ago    Seconds `json:"ago_seconds"`
	Node   string  `json:"node"`
	Reason string  `json:"reason"`
	Where  Where   `json:"where"`
	Level  string  `json:"level"`
	Want   string  `json:"want,omitempty"`
	Have   string  `json:"have,omitempty"`
	Gap    uint64  `json:"gap_bytes"`
	Age    Seconds `json:"age_seconds"`
	Waited Seconds `json:"waited_seconds"`
	Lost   bool    `json:"possibly_lost"`
}

// Setting is one setting as it is at the moment. Nothing secret.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
