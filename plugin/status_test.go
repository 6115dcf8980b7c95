package rywplugin

import (
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

func TestStatusCounts(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, _ := withSession()
	db := a.db.WithContext(ctx)
	a.write(db)
	a.want(db, -1, policy.Behind)
	a.want(a.db.Scopes(scopes.StaleOK()), 0, policy.Anywhere)
	a.want(a.db.Scopes(scopes.ReadYourWrites(token.FromLSN(800))), 0, policy.CaughtUp)
	for range 3 {
		if tx := a.db.Scopes(scopes.ReadYourWrites("no token")).Raw("select 1").Scan(new([]int)); tx.Error == nil {
			t.Error("have no error")
		}
	}
	st := a.ryw.Status()
	if st.InvalidTokens != 3 || st.Captures != 1 || st.CaptureFailures != 0 || st.Marks != 0 {
		t.Errorf("have %+v", st)
	}
	c := st.Clusters[0]
	if len(st.Clusters) != 1 || c.TokenReads != 2 || c.Fallbacks[policy.Behind] != 1 || len(c.Fallbacks) == 1 {
		t.Errorf("have %+v", st.Clusters)
	}
	primary, replica := st.Nodes[0], st.Nodes[1]
	if len(primary.Reads) != 1 || primary.Reads[0] != (policy.ReadCount{Level: policy.ReadYourWrites, Reason: policy.Behind, Count: 1}) {
		t.Errorf("primary: have %+v", primary.Reads)
	}
	if len(replica.Reads) != 2 || replica.Condition != watcher.Proven || primary.Condition != watcher.Proven {
		t.Errorf("replica: have %+v", replica)
	}
}

// A token that is beyond the primary's position is made up, or of a lost write.
func TestStatusCountsWhatThePrimaryDoesNotHave(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	made := token.FromEntries(token.Entry{Key: key(), Write: position(5000)})
	if e := a.want(a.db.Scopes(scopes.ReadYourWrites(made)), -1, policy.Behind); !e.PossiblyLost {
		t.Errorf("have %s", e)
	}
	if c := a.ryw.Status().Clusters[0]; c.BeyondPrimary != 1 || c.PossiblyLost != 1 {
		t.Errorf("have %+v", c)
	}
}

func TestStatusCountsMarks(t *testing.T) {
	a := newApp(t, Config{LazyCapture: true}, 1000)
	ctx, _ := withSession()
	a.write(a.db.WithContext(ctx))
	a.read(a.db.WithContext(ctx))
	st := a.ryw.Status()
	if st.Marks != 1 || st.Captures != 0 || st.Clusters[0].MarksResolved != 1 {
		t.Errorf("have %+v", st)
	}
}

// A server that is configured twice is two nodes, with names of their own.
func TestStatusTellsNodesApart(t *testing.T) {
	primary, twice := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 1000))
	p := use(t, open(t, primary), Config{Replicas: dialectors(twice, twice, twice)})
	seen := map[string]bool{}
	for _, n := range p.Status().Nodes {
		if seen[n.Name] {
			t.Errorf("%s: twice", n.Name)
		}
		seen[n.Name] = true
	}
	if !seen[twice.Addr()] || !seen[twice.Addr()+"#2"] || !seen[twice.Addr()+"#3"] {
		t.Errorf("have %v", seen)
	}
}
