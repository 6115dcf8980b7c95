package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Render draws operations as a timeline: one column per session, time running
// down in milliseconds since the first start. An operation during which
// nothing else began or ended takes one line, any other one a line for its
// start and one for its end. Times of different clocks cannot be ordered: with
// more than one clock the operations stay in the order given, each with its
// own clock's time.
func Render(ops []Op) string {
	list := make([]*Op, len(ops))
	for i := range ops {
		list[i] = &ops[i]
	}
	return renderOps(list)
}

func renderOps(ops []*Op) string {
	if len(ops) == 0 {
		return ""
	}
	s := sheet{zero: zeros(ops)}
	for _, op := range ops {
		s.column(op)
	}
	if len(s.zero) == 1 {
		s.addInOrder(ops)
	} else {
		for _, op := range ops {
			s.add(op, fmt.Sprintf("%s  [clock %s]", whole(op), op.Clock), op.Start, op.End)
		}
	}
	return s.text()
}

// zeros returns the earliest start of each clock.
func zeros(ops []*Op) map[string]int64 {
	zero := make(map[string]int64)
	for _, op := range ops {
		if first, ok := zero[op.Clock]; !ok || op.Start < first {
			zero[op.Clock] = op.Start
		}
	}
	return zero
}

// sheet is a timeline being drawn.
type sheet struct {
	zero     map[string]int64
	sessions []string
	heads    []string
	lines    []line
}

type line struct {
	time   string
	column int
	text   string
}

func (s *sheet) column(op *Op) int {
	if i := slices.Index(s.sessions, op.Session); i >= 0 {
		return i
	}
	head := op.Session
	if op.Process != "" {
		head += " (" + op.Process + ")"
	}
	s.sessions = append(s.sessions, op.Session)
	s.heads = append(s.heads, head)
	return len(s.sessions) - 1
}

func (s *sheet) add(op *Op, text string, times ...int64) {
	var shown []string
	for _, t := range times {
		ms := fmt.Sprintf("%.3f", float64(t-s.zero[op.Clock])/1e6)
		if !slices.Contains(shown, ms) {
			shown = append(shown, ms)
		}
	}
	s.lines = append(s.lines, line{strings.Join(shown, " - "), s.column(op), text})
}

// edge is the start or the end of an operation.
type edge struct {
	op   *Op
	time int64
	end  bool
}

// addInOrder adds the lines of operations that share a clock.
func (s *sheet) addInOrder(ops []*Op) {
	edges := edgesOf(ops)
	for i := 0; i < len(edges); i++ {
		switch e := edges[i]; {
		case i+1 < len(edges) && !e.end && edges[i+1].op == e.op:
			s.add(e.op, whole(e.op), e.time, edges[i+1].time)
			i++
		case e.end:
			s.add(e.op, ended(e.op), e.time)
		case e.op.open():
			s.add(e.op, begun(e.op)+" … never answered", e.time)
		default:
			s.add(e.op, begun(e.op)+" …", e.time)
		}
	}
}

func edgesOf(ops []*Op) []edge {
	var edges []edge
	for _, op := range ops {
		edges = append(edges, edge{op, op.Start, false})
		if !op.open() {
			edges = append(edges, edge{op, op.End, true})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.time, b.time) })
	return edges
}

func (s *sheet) text() string {
	widths := []int{len("ms")}
	for _, head := range s.heads {
		widths = append(widths, utf8.RuneCountInString(head))
	}
	for _, l := range s.lines {
		widths[0] = max(widths[0], len(l.time))
		widths[l.column+1] = max(widths[l.column+1], utf8.RuneCountInString(l.text))
	}
	var b strings.Builder
	writeRow(&b, widths, append([]string{"ms"}, s.heads...))
	for _, l := range s.lines {
		cells := make([]string, len(widths))
		cells[0], cells[l.column+1] = l.time, l.text
		writeRow(&b, widths, cells)
	}
	return b.String()
}

func writeRow(b *strings.Builder, widths []int, cells []string) {
	var row strings.Builder
	for i, cell := range cells {
		row.WriteString(cell)
		row.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
	}
	b.WriteString(strings.TrimRight(row.String(), " "))
	b.WriteByte('\n')
}

// whole, begun and ended put an operation into words: all of it, its start,
// its end. Each begins with the number that marks refer to.
func whole(op *Op) string {
	switch {
	case op.Kind == Receive:
		return begun(op)
	case op.Kind == Write:
		return begun(op) + ", " + op.Outcome.String()
	}
	return number(op) + "read " + found(op)
}

func begun(op *Op) string {
	switch op.Kind {
	case Receive:
		return number(op) + "receive " + op.From.String()
	case Write:
		return number(op) + "write " + op.Key + " = " + versionText(op.Version)
	}
	return number(op) + "read " + op.Key
}

func ended(op *Op) string {
	switch op.Kind {
	case Receive:
		return number(op) + "… received"
	case Write:
		return number(op) + "… " + op.Outcome.String()
	}
	return number(op) + "… " + found(op)
}

func number(op *Op) string { return "@" + strconv.Itoa(op.Seq) + " " }

// found says what a read returned, and from where.
func found(op *Op) string {
	if op.Outcome != OK {
		return op.Key + ", " + op.Outcome.String()
	}
	text := op.Key + " = " + versionText(op.Version)
	if op.Role != 0 || op.Node != "" {
		text += " from " + strings.TrimSpace(op.Role.String()+" "+op.Node)
	}
	return text
}

func versionText(version int64) string {
	switch version {
	case 0:
		return "absent"
	case VersionUnknown:
		return "?"
	}
	return strconv.FormatInt(version, 10)
}
