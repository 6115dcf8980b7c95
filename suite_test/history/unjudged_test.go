package history

import (
	"strings"
	"testing"
)

func TestNotJudged(t *testing.T) {
	runJudged(t, []judged{
		{"no reads", `a w k=5 0-10`, "unknown history"},
		{"sender not in the history", `
			b recv a@1 15
			b r k=0 20-30`, "unknown b@1"},
		{"sender's operation not in the history", `
			a w k=5 0-10
			b recv a@2 15
			b r k=5 20-30`, "unknown b@1"},
		{"what there is of the sender binds all the same", `
			a w k=5 0-10
			b recv a@2 15
			b r k=0 20-30`, "ryw b@2; unknown b@1"},
		{"the sender's first operation not in the history", `
			a@2 w k=5 0-10
			b recv a@1 15
			b r k=0 20-30`, "unknown a@2 b@1"},
		{"gap in a session", `
			a@1 w k=5 0-10
			a@3 r k=5 20-30`, "unknown a@3"},
		{"session recorded twice", `
			a@1 w k=5 0-10
			a@1 w x=5 0-10
			a@2 r k=5 20-30`, "unknown a@1"},
		{"received from its own future", `
			a recv b@1 1
			a r k=0 2-3
			b recv a@1 1
			b r k=0 2-3`, "unknown b@1"},
		{"received from itself, later", `
			a recv a@2 1
			a r k=0 2-3`, "unknown a@1"},
		{"received before the operation had ended", `
			a w k=5 0-20
			b recv a@1 15
			b r k=5 25-30`, "unknown b@1"},
		{"received the state after an operation without an end", `
			a w k=5 0- unknown
			b recv a@1 15
			b r k=5 25-30`, "unknown b@1"},
		{"overlapping operations do not bind each other", `
			a w k=5 0-20
			a r k=0 10-30
			a r k=5 31-32`, "unknown a@2"},
		{"but the next one", `
			a w k=5 0-20
			a r k=5 10-30
			a r k=0 31-32`, "ryw a@3; mono a@3; unknown a@2"},
		{"overlapping writes have no order", `
			a w k=5 0-20
			a w k=4 10-30
			a r k=5 31-32`, "unknown a@2"},
		{"times of different clocks do not overlap", `
			a r k=0 100-110 clock=x
			a r k=0 5-9`, ""},
		{"nothing follows an operation without an end", `
			a w k=5 0- unknown
			a r k=0 10-30`, "unknown a@2"},
		{"two acknowledged writes of one version", `
			a w k=5 0-10
			b w k=5 20-30
			a r k=5 40-50`, "unknown b@1"},
		{"acknowledged below a known version", `
			a w k=5 0-10
			a w k=4 20-30
			a r k=5 40-50`, "unknown a@2"},
		{"acknowledged below a version read", `
			a w k=5 0-10
			b r k=5 11-12
			b w k=4 20-30
			b r k=5 40-50`, "unknown b@2"},
		{"a write not above the initial version", `
			initial k=5
			a w k=5 0-10
			a r k=5 40-50`, "unknown a@1"},
		{"written on another clock", `
			a w k=5 0-10 clock=other
			b r k=5 40-50`, "unknown b@1"},
		{"written on another clock in the causal past", `
			a w k=5 90-99 clock=other
			b recv a@1 30
			b r k=5 40-50`, ""},
		{"unknown write on another clock", `
			a w k=? 0-10 unknown clock=other
			b r k=5 40-50`, "unknown b@1"},
		{"ends before it starts", `
			a r k=0 0-10
			a r k=0 30-20`, "unknown a@2"},
		{"acknowledged without a version", `
			a r k=0 0-10
			b w k=? 30-40`, "unknown b@1"},
	}, Options{})
}

func TestMalformedOpsAreNotJudged(t *testing.T) {
	good := Op{Kind: Read, Session: "a", Seq: 1, Key: "k", Start: 1, End: 2, Answer: Answer{Outcome: OK}}
	for name, spoil := range map[string]func(*Op){
		"kind":           func(o *Op) { o.Kind = 0 },
		"initial kind":   func(o *Op) { o.Kind = kindInitial },
		"session":        func(o *Op) { o.Session = "" },
		"sequence":       func(o *Op) { o.Seq = 0 },
		"key":            func(o *Op) { o.Key = "" },
		"no outcome":     func(o *Op) { o.Outcome = 0 },
		"outcome":        func(o *Op) { o.Outcome = 9 },
		"read version":   func(o *Op) { o.Version = -1 },
		"write absent":   func(o *Op) { o.Kind = Write },
		"receive":        func(o *Op) { o.Kind = Receive },
		"receive before": func(o *Op) { o.Kind, o.From, o.End = Receive, Mark{"b", 0}, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			bad.Session, bad.Seq = "b", 1
			spoil(&bad)
			r := Check(History{Ops: []Op{good, bad}}, Options{})
			if r.Ok() || len(r.Unknown) != 1 || !strings.Contains(r.Unknown[0].Why, "malformed") {
				t.Errorf("have Ok %v and %v, want one malformed record", r.Ok(), r.Unknown)
			}
		})
	}
	if r := Check(History{Ops: []Op{good}}, Options{}); !r.Ok() {
		t.Errorf("the good operation alone: %s", r.String())
	}
}
