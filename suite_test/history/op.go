package history

import (
	"fmt"
	"strconv"
	"strings"
)

// VersionUnknown is the version of a write that never learnt it: the row
// assigns versions and the answer was lost. Such a write accounts for at most
// one version that nobody else wrote.
const VersionUnknown int64 = -1

// Kind says what an operation is. The zero value is invalid.
type Kind uint8

// Kinds of operations.
const (
	Write   Kind = iota + 1 // stores a version in a key
	Read                    // returns the version of a key
	Receive                 // takes over another session's causal past

	kindPromotion // a line of its own in the text form, see Promotion
	kindInitial   // a line of its own in the text form, see History.Initial
)

// Outcome is what the client knows about its operation. The zero value is
// invalid for writes and reads and the only one for a receive.
type Outcome uint8

// Outcomes.
const (
	OK      Outcome = iota + 1 // acknowledged; a read returned its version
	Failed                     // certainly not applied; a read returned nothing
	Unknown                    // may have been applied, or may be at any later time
)

// Role is what a node said it was in the answer itself. The zero value means
// not recorded, which never excuses anything.
type Role uint8

// Roles.
const (
	Primary Role = iota + 1
	Replica
)

var (
	kindNames    = []string{"", "write", "read", "receive", "promotion", "initial"}
	outcomeNames = []string{"", "ok", "failed", "unknown"}
	roleNames    = []string{"", "primary", "replica"}
)

// String returns the name used in the text form.
func (k Kind) String() string { return nameOf(kindNames, uint8(k)) }

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return marshalName("kind", kindNames, uint8(k)) }

// UnmarshalText implements [encoding.TextUnmarshaler]; an unknown name is an error.
func (k *Kind) UnmarshalText(text []byte) error {
	return unmarshalName("kind", kindNames, text, (*uint8)(k))
}

// String returns the name used in the text form.
func (o Outcome) String() string { return nameOf(outcomeNames, uint8(o)) }

// MarshalText implements [encoding.TextMarshaler].
func (o Outcome) MarshalText() ([]byte, error) {
	return marshalName("outcome", outcomeNames, uint8(o))
}

// UnmarshalText implements [encoding.TextUnmarshaler]; an unknown name is an error.
func (o *Outcome) UnmarshalText(text []byte) error {
	return unmarshalName("outcome", outcomeNames, text, (*uint8)(o))
}

// String returns the name used in the text form, empty if not recorded.
func (r Role) String() string { return nameOf(roleNames, uint8(r)) }

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return marshalName("role", roleNames, uint8(r)) }

// UnmarshalText implements [encoding.TextUnmarshaler]; an unknown name is an error.
func (r *Role) UnmarshalText(text []byte) error {
	return unmarshalName("role", roleNames, text, (*uint8)(r))
}

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return strconv.Itoa(int(i))
}

func marshalName(what string, names []string, i uint8) ([]byte, error) {
	if i == 0 || int(i) >= len(names) {
		return nil, fmt.Errorf("history: %s %d has no name", what, i)
	}
	return []byte(names[i]), nil
}

func unmarshalName(what string, names []string, text []byte, into *uint8) error {
	for i := 1; i < len(names); i++ {
		if names[i] == string(text) {
			*into = uint8(i)
			return nil
		}
	}
	return fmt.Errorf("history: %s %q, want one of %s", what, text, strings.Join(names[1:], ", "))
}

// LSN is a position in the write-ahead log in bytes. Its text form is
// PostgreSQL's, such as "A2C/FE118820". Zero means not recorded.
type LSN uint64

// ParseLSN reads PostgreSQL's text form.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, errHigh := strconv.ParseUint(high, 16, 32)
	l, errLow := strconv.ParseUint(low, 16, 32)
	if !ok || errHigh != nil || errLow != nil {
		return 0, fmt.Errorf("history: position %q, want two hexadecimal numbers as in 16/B374D848", text)
	}
	return LSN(h<<32 | l), nil
}

// String returns PostgreSQL's text form.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// MarshalText implements [encoding.TextMarshaler].
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *LSN) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLSN(string(text))
	return err
}

// Mark names the state of a session after one of its operations. Seq 0 is the
// state before the first one. Its text form "alice@17" travels beside the
// token that it stands for.
type Mark struct {
	Session string
	Seq     int
}

// ParseMark reads the text form of a mark.
func ParseMark(text string) (Mark, error) {
	i := strings.LastIndexByte(text, '@')
	if i <= 0 {
		return Mark{}, fmt.Errorf("history: mark %q, want session@number", text)
	}
	seq, err := strconv.Atoi(text[i+1:])
	if err != nil || seq < 0 {
		return Mark{}, fmt.Errorf("history: mark %q, want a number from 0 after the @", text)
	}
	return Mark{Session: text[:i], Seq: seq}, nil
}

// String returns the text form.
func (m Mark) String() string { return m.Session + "@" + strconv.Itoa(m.Seq) }

// MarshalText implements [encoding.TextMarshaler].
func (m Mark) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mark) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMark(string(text))
	return err
}

// Answer is what came back for an operation.
type Answer struct {
	// Outcome is required for writes and reads.
	Outcome Outcome `json:"outcome,omitempty"`
	// Version is the version written or read: 0 is absent (reads only),
	// VersionUnknown a write's that was never learnt.
	Version int64 `json:"version,omitempty"`
	// Node names the server that answered, in any form; only printed.
	Node string `json:"node,omitempty"`
	// Role is what that server said it was in the same answer.
	Role Role `json:"role,omitempty"`
	// Timeline and Position are where the commit of an acknowledged write
	// was captured. Zero means not recorded: such a write is never excused
	// as lost.
	Timeline uint32 `json:"timeline,omitempty"`
	Position LSN    `json:"position,omitempty"`
	// Strict says that the read ran in mode Strict: no blind spot for it.
	Strict bool `json:"strict,omitempty"`
	// LostReported says that the read's explanation reported a possibly
	// lost write.
	LostReported bool `json:"lost_reported,omitempty"`
}

// Op is one recorded operation.
type Op struct {
	Kind Kind `json:"kind"`
	// Process is where it ran; only printed.
	Process string `json:"process,omitempty"`
	// Session is the causal thread, unique in the whole history.
	Session string `json:"session"`
	// Seq counts the session's operations from 1, without gaps.
	Seq int `json:"seq"`
	// Clock names the clock of Start and End. Times are compared only
	// between equal names.
	Clock string `json:"clock,omitempty"`
	// Start and End are nanoseconds. End 0 is an operation that never ended,
	// which is right for an unknown outcome only.
	Start int64 `json:"start"`
	End   int64 `json:"end,omitempty"`
	// Key is the register, for writes and reads.
	Key string `json:"key,omitempty"`
	Answer
	// From is the state received, for a receive.
	From Mark `json:"from,omitzero"`
}

// Mark returns the state of the session after this operation.
func (o *Op) Mark() Mark { return Mark{Session: o.Session, Seq: o.Seq} }

// open reports whether the operation never ended.
func (o *Op) open() bool { return o.End == 0 && o.Outcome == Unknown }

// Promotion is a failover: a standby left its timeline at the switch point and
// began a new one. PostgreSQL writes both into the new timeline's history file,
// whose last line counts.
type Promotion struct {
	// Clock and At say when the promotion was asked for: nothing was
	// readable on the new timeline before.
	Clock string `json:"clock,omitempty"`
	At    int64  `json:"at,omitempty"`
	// OldTimeline is where the standby came from; only printed.
	OldTimeline uint32 `json:"old_timeline,omitempty"`
	// NewTimeline begins at SwitchPoint. It contains nothing of any lower
	// timeline beyond that.
	NewTimeline uint32 `json:"new_timeline,omitempty"`
	SwitchPoint LSN    `json:"switch_point,omitempty"`
}

// loses reports whether a write lies beyond the switch point. The timeline need
// not be OldTimeline: a standby that lags behind one promotion and is then
// promoted itself leaves out all of the timeline between.
func (p *Promotion) loses(w *Op) bool {
	return w.Position > p.SwitchPoint && w.Timeline != 0 && w.Timeline < p.NewTimeline
}

// String returns the promotion in words.
func (p *Promotion) String() string {
	return fmt.Sprintf("promotion from timeline %d to %d at %s", p.OldTimeline, p.NewTimeline, p.SwitchPoint)
}

// defect says why an operation cannot be judged at all, empty if it can.
func (o *Op) defect() string {
	switch {
	case o.Session == "" || o.Seq < 1:
		return "no session, or a sequence number below 1"
	case o.Kind == Receive:
		return o.receiveDefect()
	case o.Kind != Write && o.Kind != Read:
		return "neither write, read nor receive"
	case o.Key == "":
		return "no key"
	case o.Outcome < OK || o.Outcome > Unknown:
		return "no outcome"
	case o.End < o.Start && !o.open():
		return "ends before it starts"
	case o.Outcome == OK:
		return o.versionDefect()
	}
	return ""
}

func (o *Op) receiveDefect() string {
	if o.From.Session == "" || o.From.Seq < 0 {
		return "received from nowhere"
	}
	if o.End < o.Start {
		return "ends before it starts"
	}
	return ""
}

func (o *Op) versionDefect() string {
	if o.Kind == Write && o.Version < 1 {
		return "an acknowledged write needs a version from 1"
	}
	if o.Kind == Read && o.Version < 0 {
		return "a read cannot return a version below 0"
	}
	return ""
}
