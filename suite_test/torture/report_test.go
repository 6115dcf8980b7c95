package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// judged returns the outcome of a run in which a read lacked a write of its own
// session, at that position of timeline 1, which a failover left at 100.
func judged(mode string, position history.LSN, reported bool) *outcome {
	h := history.History{Promotions: []history.Promotion{{At: 25, OldTimeline: 1, NewTimeline: 2, SwitchPoint: 100}}}
	add := func(kind history.Kind, start int64, a history.Answer) {
		h.Ops = append(h.Ops, history.Op{
			Kind: kind, Session: "s", Seq: len(h.Ops) + 1, Start: start, End: start + 5, Key: keyName(1), Answer: a,
		})
	}
	add(history.Write, 10, history.Answer{Outcome: history.OK, Version: 1, Timeline: 1, Position: position})
	add(history.Read, 30, history.Answer{Outcome: history.OK, Role: history.Primary, LostReported: reported})
	return &outcome{
		options: &Options{Mode: mode}, promotions: h.Promotions, tally: Tally{Ops: 2, Reasons: map[policy.Reason]int64{policy.ByStrong: 1}},
		result: history.Check(h, history.Options{}), reported: hadTheyReported(h, false),
	}
}

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome *outcome
		ok      bool
		says    string
	}{
		"a lost write":          {judged(modeRYW, 101, true), true, "lost=1"},
		"one that was not told": {judged(modeRYW, 101, false), false, "a lost write that was not reported: "},
		"a stale read":          {judged(modeRYW, 99, true), false, "no lost write: "},
		"a control's":           {judged(modeDBResolver, 99, true), true, "ryw_violations=1"},
		"a control that passes": {judged(modeDBResolver, 101, true), false, "ryw_violations=0"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			tc.outcome.report(&b)
			if tc.outcome.ok() != tc.ok || !strings.Contains(b.String(), tc.says) {
				t.Errorf("ok: have %v, want %v and %q in:\n%s", tc.outcome.ok(), tc.ok, tc.says, b.String())
			}
			lines := strings.Split(strings.TrimSpace(b.String()), "\n")
			if last := lines[len(lines)-1]; !regexp.MustCompile(lastLine).MatchString(last) {
				t.Errorf("the last line is %q", last)
			}
		})
	}
}

// An error of a read while a node could serve, and an operation that outlives its
// deadline, are faults; the other errors are not.
func TestWhichErrorsAreFaults(t *testing.T) {
	f := []Failure{{Mark: "s@1", Class: "connect", Text: "refused\nat all"}}
	for name, tc := range map[string]struct {
		change func(*outcome)
		ok     bool
	}{
		"a write":         {func(r *outcome) { r.writes = f }, true},
		"nobody there":    {func(r *outcome) { r.unserved = f }, true},
		"behind a row":    {func(r *outcome) { r.broken = f }, true},
		"somebody there":  {func(r *outcome) { r.served = f }, false},
		"out of all time": {func(r *outcome) { r.tally.Overdue = f }, false},
	} {
		r := judged(modeRYW, 101, true)
		tc.change(r)
		var b bytes.Buffer
		r.report(&b)
		if r.ok() != tc.ok || !strings.Contains(b.String(), "connect") && tc.ok {
			t.Errorf("%s: ok: have %v, want %v\n%s", name, r.ok(), tc.ok, b.String())
		}
	}
}
