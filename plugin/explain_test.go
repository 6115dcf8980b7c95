package rywplugin

import (
	"context"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

func TestExplainOfNothing(t *testing.T) {
	for name, tx := range map[string]*gorm.DB{
		"nil": nil, "zero": {}, "not executed": {Statement: &gorm.Statement{Context: context.Background()}},
	} {
		e := Explain(tx)
		if e.Reason != policy.Undecided || e.Node != "" || e.Replica || !e.Token.IsZero() || !e.Want.IsZero() || e.String() != "not routed" {
			t.Errorf("%s: have %+v", name, e)
		}
		if !Token(tx).IsZero() {
			t.Errorf("%s: have token %s", name, Token(tx))
		}
	}
	if e := ExplainContext(context.Background()); e.Reason != policy.Undecided || e.Node != "" {
		t.Errorf("empty context: have %+v", e)
	}
}

func TestExplanationInOneLine(t *testing.T) {
	at := func(lsn token.LSN) token.Position { return token.Position{Timeline: 1, LSN: lsn} }
	for want, e := range map[string]Explanation{
		"not routed":                   {},
		"primary: strong":              {Node: "primary", Reason: policy.ByStrong},
		"r1:5432: any healthy replica": {Node: "r1:5432", Replica: true, Reason: policy.Anywhere},
		"r1:5432: replica has caught up, want 1:0/384, have 1:0/3B6 (5ms old)": {
			Node: "r1:5432", Reason: policy.CaughtUp, Want: at(900), Have: at(950), Age: 5 * time.Millisecond,
		},
		"primary: replicas are behind, want 1:0/384, have 1:0/352 (1ms old), 50 bytes short, waited 10ms": {
			Node: "primary", Reason: policy.Behind, Want: at(900), Have: at(850), Age: time.Millisecond, Gap: 50, Waited: 10 * time.Millisecond,
		},
	} {
		if have := e.String(); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

func TestStatusOfAPluginThatIsNotInstalled(t *testing.T) {
	st := New(Config{}).Status()
	if len(st.Nodes) != 0 || len(st.Reads) != 0 || st.Captures+st.CaptureFailures+st.Marks != 0 {
		t.Errorf("have %+v", st)
	}
}
