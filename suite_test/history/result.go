package history

import (
	"fmt"
	"slices"
	"strings"
)

// Options tune [Check]. The zero value is right for a run in mode On.
type Options struct {
	// Strict says that the whole run was in mode Strict: no blind spot is
	// excused. Single reads can say so themselves, see [Answer].Strict.
	Strict bool
}

// Result is the verdict on a history. It refers to the history's operations,
// which must not be changed while it is in use.
type Result struct {
	Ops      int // all records, malformed ones included
	Sessions int
	Writes   int // all outcomes
	// UnknownWrites are the writes of unknown outcome, FailedWrites those
	// certainly not applied; both are within Writes.
	UnknownWrites int
	FailedWrites  int
	// Reads are those that returned a version, ReplicaReads those of them
	// that a replica answered. NoAnswer are reads that returned nothing:
	// they are not judged and prove nothing.
	Reads        int
	ReplicaReads int
	NoAnswer     int
	Receives     int

	// Violations. One read may break both of the first two rules.
	ReadYourWrites []Violation
	Monotonic      []Violation
	Dirty          []Violation // read the version of a write that certainly failed
	Invented       []Violation // read a version that nobody can have written

	// Excused reads, see the package documentation. They do not change Ok;
	// a test that expects none asserts that they are empty.
	BlindSpots []Violation
	LostWrites []Violation

	// Unknown is what could not be judged.
	Unknown []Violation
}

// Ok reports whether the history was judged completely and broke no rule.
func (r Result) Ok() bool { return r.Violations() == 0 && len(r.Unknown) == 0 }

// Violations counts the broken rules; excused reads and what could not be
// judged are not among them.
func (r Result) Violations() int {
	return len(r.ReadYourWrites) + len(r.Monotonic) + len(r.Dirty) + len(r.Invented)
}

// shown is how many entries of each list String prints.
const shown = 3

// String returns all counts in one line, followed by the first timelines of
// each list, excuses included.
func (r Result) String() string {
	var b strings.Builder
	verdict := "legal"
	if r.Violations() > 0 {
		verdict = "ILLEGAL"
	} else if !r.Ok() {
		verdict = "UNDECIDED"
	}
	fmt.Fprintf(&b, "%s: %d operations of %d sessions: %d reads (%d on replicas, %d more without an answer), %d writes (%d unknown, %d failed), %d receives;",
		verdict, r.Ops, r.Sessions, r.Reads, r.ReplicaReads, r.NoAnswer, r.Writes, r.UnknownWrites, r.FailedWrites, r.Receives)
	fmt.Fprintf(&b, " broken: %d read-your-writes, %d monotonic, %d dirty, %d invented; excused: %d blind spots, %d lost writes; unknown: %d\n",
		len(r.ReadYourWrites), len(r.Monotonic), len(r.Dirty), len(r.Invented), len(r.BlindSpots), len(r.LostWrites), len(r.Unknown))
	for _, list := range [][]Violation{r.ReadYourWrites, r.Monotonic, r.Dirty, r.Invented, r.Unknown, r.BlindSpots, r.LostWrites} {
		printSome(&b, list)
	}
	return b.String()
}

func printSome(b *strings.Builder, list []Violation) {
	for i := range list[:min(shown, len(list))] {
		b.WriteByte('\n')
		b.WriteString(list[i].String())
	}
	if more := len(list) - shown; more > 0 {
		fmt.Fprintf(b, "\n… and %d more: %s\n", more, list[0].Rule)
	}
}

// Rule says what an entry of a [Result] is about.
type Rule uint8

// Rules, excuses, and what could not be judged.
const (
	RuleReadYourWrites Rule = iota + 1
	RuleMonotonic
	RuleDirty
	RuleInvented
	ExcuseBlindSpot
	ExcuseLostWrite
	NotJudged
)

var ruleNames = []string{
	"", "read your writes, broken", "monotonic reads, broken", "dirty read", "invented value",
	"blind spot, excused", "lost write, excused", "not judged",
}

// String returns the rule in words.
func (r Rule) String() string { return nameOf(ruleNames, uint8(r)) }

// Violation is one entry of a [Result]. It points into the checked history.
type Violation struct {
	Rule Rule
	// Op is the operation judged, nil if the history as a whole is meant.
	Op *Op
	// Want is the operation in the causal past of Op whose version Op had to
	// return at least; nil for rules without one.
	Want *Op
	// Timeline holds Op, Want, the receives that lead from one to the other
	// and the writes that explain them.
	Timeline []*Op
	// Why explains what Op and Want do not say by themselves; may be empty.
	Why string
}

// String returns a headline and the timeline.
func (v Violation) String() string {
	if v.Op == nil {
		return fmt.Sprintf("%s: %s\n", v.Rule, v.Why)
	}
	head := fmt.Sprintf("%s: %s: %s\n", v.Rule, v.Op.Mark(), v.headline())
	return head + indent(renderOps(withoutRepeats(v.Timeline)))
}

func (v Violation) headline() string {
	if v.Want == nil {
		return v.Why
	}
	text := fmt.Sprintf("%s: have %s, want at least %s (%s %s)",
		v.Op.Key, versionText(v.Op.Version), versionText(v.Want.Version), v.Want.Mark(), pastTense(v.Want.Kind))
	if v.Why != "" {
		text += ", " + v.Why
	}
	return text
}

func pastTense(k Kind) string {
	if k == Write {
		return "wrote it"
	}
	return "read it"
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func withoutRepeats(ops []*Op) []*Op {
	var once []*Op
	for _, op := range ops {
		if !slices.Contains(once, op) {
			once = append(once, op)
		}
	}
	return once
}
