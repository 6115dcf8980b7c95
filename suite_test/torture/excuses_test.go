package main

import (
	"testing"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// twoPrimaries is a history with a failover from timeline 1 to 2 whose old primary
// took writes from 20 to 60: of key 1 version 1, by whom and captured where is left
// to the test. A read of the same session lacks it later.
type twoPrimaries struct {
	process  string // of the writer
	outcome  history.Outcome
	timeline uint32 // of the capture; 0 for none
	position history.LSN
	reader   string // who reads the write on the old primary first; empty for nobody
	reported bool
}

func (p twoPrimaries) history() history.History {
	h := history.History{Promotions: []history.Promotion{{At: 20, OldTimeline: 1, NewTimeline: 2, SwitchPoint: 100}}}
	add := func(process, session string, start int64, o history.Op) {
		o.Process, o.Session, o.Start, o.End, o.Key = process, session, start, start+5, keyName(1)
		for i := range h.Ops {
			if h.Ops[i].Session == session {
				o.Seq++
			}
		}
		o.Seq++
		h.Ops = append(h.Ops, o)
	}
	add(p.process, "s", 30, history.Op{Kind: history.Write, Answer: history.Answer{
		Outcome: p.outcome, Version: 1, Timeline: p.timeline, Position: p.position,
	}})
	last := "s"
	if p.reader != "" {
		last = "r"
		add(p.reader, "r", 40, history.Op{Kind: history.Read, Answer: history.Answer{Outcome: history.OK, Version: 1, Role: history.Primary}})
	}
	add("late", last, 70, history.Op{Kind: history.Read, Answer: history.Answer{
		Outcome: history.OK, Role: history.Primary, LostReported: p.reported,
	}})
	return h
}

// What exactly is left out where two servers took writes, and what is not.
func TestWhatIsNotPromised(t *testing.T) {
	orders := map[string]Orders{
		"hosts": {Mode: modeRYW, Road: roadPostgres, Endpoint: endpointHosts}, "moving": {Mode: modeRYW, Road: roadPostgres, Endpoint: endpointMoving},
		"rywpgx": {Mode: modeRYW, Road: roadRYWPGX, Endpoint: endpointHosts}, "late": {Mode: modeRYW, Road: roadRYWPGX, Endpoint: endpointHosts},
	}
	for name, tc := range map[string]struct {
		h                                     twoPrimaries
		broken, lost, misplaced, unsure, told int
	}{
		"captured where it went, not reported": {twoPrimaries{"hosts", history.OK, 1, 150, "", false}, 1, 0, 0, 0, 0},
		"captured where it went, reported":     {twoPrimaries{"hosts", history.OK, 1, 150, "", true}, 0, 1, 0, 0, 0},
		"captured elsewhere":                   {twoPrimaries{"hosts", history.OK, 2, 150, "", false}, 0, 0, 1, 0, 0},
		"captured elsewhere by rywpgx":         {twoPrimaries{"rywpgx", history.OK, 2, 150, "", false}, 1, 0, 0, 0, 0},
		"captured elsewhere by one address":    {twoPrimaries{"moving", history.OK, 2, 150, "", false}, 1, 0, 0, 0, 0},
		"not captured, reported":               {twoPrimaries{"hosts", history.OK, 0, 0, "", true}, 0, 1, 0, 0, 0},
		"not captured, not reported":           {twoPrimaries{"hosts", history.OK, 0, 0, "", false}, 1, 0, 0, 0, 0},
		"seen by somebody":                     {twoPrimaries{"rywpgx", history.OK, 1, 150, "rywpgx", false}, 1, 0, 0, 0, 0},
		"seen by one who cannot be sure":       {twoPrimaries{"rywpgx", history.OK, 1, 150, "hosts", false}, 0, 0, 0, 1, 0},
		"seen, never told, reported":           {twoPrimaries{"rywpgx", history.Unknown, 0, 0, "rywpgx", true}, 0, 0, 0, 0, 1},
		"seen, never told, not reported":       {twoPrimaries{"rywpgx", history.Unknown, 0, 0, "rywpgx", false}, 1, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := tc.h.history()
			r := &outcome{options: &Options{Mode: modeRYW}}
			r.splits = []split{{from: 20, to: 60, promotion: h.Promotions[0], strays: map[stray]bool{{1, 1}: true}}}
			locate(h.Ops, r.splits)
			r.judge(h, orders)
			have := []int{r.result.Violations(), len(r.result.LostWrites), r.misplaced, r.unsure, len(r.untold)}
			want := []int{tc.broken, tc.lost, tc.misplaced, tc.unsure, tc.told}
			for i := range have {
				if have[i] != want[i] {
					t.Fatalf("violations, lost, misplaced, unsure, untold: have %v, want %v\n%s", have, want, r.result)
				}
			}
			if left := tc.misplaced + tc.unsure; r.would != left {
				t.Errorf("violations there would be: have %d, want %d", r.would, left)
			}
		})
	}
}

// Without two primaries nothing is left out.
func TestNothingIsLeftOutOtherwise(t *testing.T) {
	h := twoPrimaries{"hosts", history.OK, 2, 150, "", false}.history()
	r := &outcome{options: &Options{Mode: modeRYW}}
	r.judge(h, map[string]Orders{"hosts": {Mode: modeRYW, Road: roadPostgres, Endpoint: endpointHosts}})
	if r.result.Violations() != 1 || r.would != 0 {
		t.Errorf("have %s", r.result)
	}
}

func TestReadsRefusedBecauseOfTwoPrimaries(t *testing.T) {
	r := &outcome{splits: []split{{from: 1000 * ms, to: 2000 * ms}}}
	for name, tc := range map[string]struct {
		f    Failure
		want bool
	}{
		"while there are two": {Failure{Class: classStale, Start: 1500 * ms, End: 1600 * ms}, true},
		"just ended":          {Failure{Class: classNotAdmitted, Start: 2200 * ms, End: 2300 * ms}, true},
		"before":              {Failure{Class: classStale, Start: 900 * ms, End: 999 * ms}, false},
		"long after":          {Failure{Class: classStale, Start: 2300 * ms, End: 2400 * ms}, false},
		"another error":       {Failure{Class: "connect", Start: 1500 * ms, End: 1600 * ms}, false},
	} {
		if have := r.refusedBySplit(&tc.f); have != tc.want {
			t.Errorf("%s: have %v, want %v", name, have, tc.want)
		}
	}
}
