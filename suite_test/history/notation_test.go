package history

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// parse reads the notation of the tests, one record a line:
//
//	session w|r key=version start-end [flags]
//	session recv mark time
//	initial key=version
//	promotion time old>new lsn
//
// Flags: failed, unknown, primary, replica, strict, lost, pos=timeline:lsn,
// clock=name. A version may be "?". Sequence numbers are counted unless a
// session is written as name@number.
func parse(t testing.TB, text string) History {
	t.Helper()
	n := notation{t: t, seq: make(map[string]int)}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			n.line(f)
		}
	}
	return n.h
}

type notation struct {
	t   testing.TB
	h   History
	seq map[string]int
}

func (n *notation) line(f []string) {
	switch f[0] {
	case "initial":
		key, version, _ := strings.Cut(f[1], "=")
		n.must(n.h.declare(key, n.number(version)))
	case "promotion":
		timelines := strings.Split(f[2], ">")
		n.h.Promotions = append(n.h.Promotions, Promotion{
			At: n.number(f[1]), OldTimeline: uint32(n.number(timelines[0])),
			NewTimeline: uint32(n.number(timelines[1])), SwitchPoint: n.lsn(f[3]),
		})
	default:
		n.h.Ops = append(n.h.Ops, n.op(f))
	}
}

func (n *notation) op(f []string) Op {
	op := Op{Session: f[0], Answer: Answer{Outcome: OK}}
	if name, seq, ok := strings.Cut(f[0], "@"); ok {
		op.Session = name
		n.seq[name] = int(n.number(seq)) - 1
	}
	n.seq[op.Session]++
	op.Seq = n.seq[op.Session]
	start, end, isRange := strings.Cut(f[3], "-")
	op.Start = n.number(start)
	if op.End = op.Start; isRange && end != "" {
		op.End = n.number(end)
	} else if isRange {
		op.End = 0
	}
	n.kind(&op, f[1], f[2])
	for _, flag := range f[4:] {
		n.flag(&op, flag)
	}
	return op
}

func (n *notation) kind(op *Op, kind, what string) {
	switch kind {
	case "recv":
		op.Kind, op.Outcome = Receive, 0
		var err error
		op.From, err = ParseMark(what)
		n.must(err)
		return
	case "w":
		op.Kind = Write
	case "r":
		op.Kind = Read
	default:
		n.t.Fatalf("kind %q", kind)
	}
	key, version, _ := strings.Cut(what, "=")
	op.Key, op.Version = key, VersionUnknown
	if version != "?" {
		op.Version = n.number(version)
	}
}

func (n *notation) flag(op *Op, flag string) {
	name, value, _ := strings.Cut(flag, "=")
	switch name {
	case "failed":
		op.Outcome = Failed
	case "unknown":
		op.Outcome = Unknown
	case "primary":
		op.Role, op.Node = Primary, "p"
	case "replica":
		op.Role, op.Node = Replica, "r1"
	case "strict":
		op.Strict = true
	case "lost":
		op.LostReported = true
	case "clock":
		op.Clock = value
	case "pos":
		timeline, lsn, _ := strings.Cut(value, ":")
		op.Timeline, op.Position = uint32(n.number(timeline)), n.lsn(lsn)
	default:
		n.t.Fatalf("flag %q", flag)
	}
}

func (n *notation) number(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	n.must(err)
	return v
}

func (n *notation) lsn(text string) LSN {
	l, err := ParseLSN(text)
	n.must(err)
	return l
}

func (n *notation) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// verdict writes a result as "ryw b@2; unknown b@3".
func verdict(r Result) string {
	var parts []string
	for _, list := range []struct {
		name string
		of   []Violation
	}{
		{"ryw", r.ReadYourWrites},
		{"mono", r.Monotonic},
		{"dirty", r.Dirty},
		{"invented", r.Invented},
		{"blind", r.BlindSpots},
		{"lost", r.LostWrites},
		{"unknown", r.Unknown},
	} {
		if len(list.of) == 0 {
			continue
		}
		part := list.name
		for i := range list.of {
			part += " " + place(list.of[i].Op)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func place(op *Op) string {
	if op == nil {
		return "history"
	}
	return fmt.Sprint(op.Mark())
}
