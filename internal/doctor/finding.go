package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Level is how bad a finding is.
type Level string

// The levels. Fail alone fails the examination.
const (
	// OK: as it should be.
	OK Level = "ok"
	// Note: worth knowing, nothing to be done.
	Note Level = "note"
	// Warn: the guarantee holds, and something of it is expensive or may be lost.
	Warn Level = "warn"
	// Fail: the guarantee does not hold, or replicas are of no use for it.
	Fail Level = "FAIL"
)

// Finding is what one check has found.
type Finding struct {
	Level  Level  `json:"level"`
	Server string `json:"server,omitempty"` // role and address; empty for all together
	Check  string `json:"check"`
	Found  string `json:"found"`
	// Means is what it means for the guarantee, Fix what to do: SQL, or a line of a
	// configuration. Both are empty for what is well.
	Means string `json:"means,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// Report is what was found, server by server.
type Report struct{ Findings []Finding }

// Count returns how many findings are of a level.
func (r *Report) Count(l Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

// Failed reports whether a finding breaks the guarantee.
func (r *Report) Failed() bool { return r.Count(Fail) > 0 }

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// WriteText writes one line for each finding, and below it what it means and how to
// change it.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	server := "\x00"
	for _, f := range r.Findings {
		if f.Server != server {
			server = f.Server
			title := server
			if title == "" {
				title = "all together"
			}
			fmt.Fprintf(&b, "%s\n", title)
		}
		fmt.Fprintf(&b, "  %-4s  %-12s  %s\n", f.Level, f.Check, indented(f.Found))
		if f.Means != "" {
			fmt.Fprintf(&b, "        means: %s\n", indented(f.Means))
		}
		if f.Fix != "" {
			fmt.Fprintf(&b, "        fix:   %s\n", indented(f.Fix))
		}
	}
	b.WriteString(r.verdict() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n               ") }

func (r *Report) verdict() string {
	return fmt.Sprintf("doctor: fail=%d warn=%d note=%d ok=%d", r.Count(Fail), r.Count(Warn), r.Count(Note), r.Count(OK))
}

// WriteJSON writes the same for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Failed   bool      `json:"failed"`
		Findings []Finding `json:"findings"`
	}{r.Failed(), r.Findings})
}
