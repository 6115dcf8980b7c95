package rywplugin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/adminpage"
	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// shown is a little of what the page tells.
type shown struct {
	Nodes []struct {
		Name, State, Reason, Position string
		Primary                       bool
	} `json:"nodes"`
	Decisions []struct{ Node, Reason, Where string } `json:"decisions"`
	Writes    struct{ Captures, Waits int64 }        `json:"writes"`
	Settings  []struct{ Name, Value string }         `json:"settings"`
	Mode      struct {
		Name               string
		Normal, Guaranteed bool
	} `json:"mode"`
	All struct{ Shed int64 } `json:"all"`
}

func (a *app) looks(path string) (string, shown) {
	a.t.Helper()
	w := httptest.NewRecorder()
	http.StripPrefix("/ryw", a.ryw.Handler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ryw"+path, nil))
	var s shown
	if strings.HasSuffix(path, ".json") {
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			a.t.Fatal(err)
		}
	}
	return w.Body.String(), s
}

func (a *app) states() []string {
	a.t.Helper()
	_, s := a.looks("/status.json")
	var states []string
	for _, n := range s.Nodes {
		states = append(states, n.State)
	}
	return states
}

func TestHandlerShowsWhatIsKnown(t *testing.T) {
	a := newApp(t, Config{}, 1000, 1000, 1000)
	a.ryw.Handler() // remembers from here on
	is := func(what string, want ...string) {
		t.Helper()
		have := a.states()
		if strings.Join(have, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: have %v, want %v", what, have, want)
		}
	}
	is("at first", "primary", "caught up", "caught up", "caught up")
	a.replicas[0].Refuse(true)
	a.replicas[0].Drop()
	a.replicas[1].Set(func(st *fakepg.State) { st.Standby = false })
	a.replicas[2].Set(func(st *fakepg.State) { st.System++ })
	ready(t, a.ryw)
	is("each in trouble", "primary", "unknown", "promoted", "unfit")
	a.replicas[2].Set(func(st *fakepg.State) { st.System-- })
	ready(t, a.ryw)
	a.primary.Refuse(true)
	a.primary.Drop()
	ready(t, a.ryw)
	is("the primary is gone", "unknown", "unknown", "promoted", "not measured")
	a.primary.Refuse(false)
	a.ryw.home.Primary.Redial()
	ready(t, a.ryw)
	a.replicas[2].Set(func(st *fakepg.State) { st.Timeline = 7 })
	ready(t, a.ryw)
	is("another timeline", "primary", "unknown", "promoted", "unproven")
}

// Neither statements nor what could be used to connect are on the page.
func TestHandlerShowsNothingSecret(t *testing.T) {
	a := newApp(t, Config{PrimaryTables: []string{"orders"}}, 1000)
	a.ryw.Handler()
	ctx, s := withSession()
	a.write(a.db.WithContext(ctx))
	a.want(a.db.WithContext(ctx), 0, policy.CaughtUp)
	a.read(a.db.Scopes(scopes.Strong()))
	a.replicas[0].Refuse(true)
	a.replicas[0].Drop()
	for !strings.Contains(a.ryw.Status().Nodes[1].Reason, "57P03") { // by a new connection
		ready(t, a.ryw)
	}
	for _, path := range []string{"/", "/status.json"} {
		body, _ := a.looks(path)
		for _, secret := range []string{"secret", "user=", "database=", "select 1", "as one", s.Token().String()} {
			if strings.Contains(body, secret) {
				t.Errorf("%s has %q", path, secret)
			}
		}
		for _, want := range []string{"replica has caught up", "strong", "orders", "57P03"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	_, have := a.looks("/status.json")
	if len(have.Decisions) != 2 || have.Decisions[0].Where != "primary" || have.Decisions[1].Where != "replica" || have.Decisions[1].Node != a.replicas[0].Addr() {
		t.Errorf("decisions: have %+v", have.Decisions)
	}
	if have.Writes.Captures != 1 || have.Writes.Waits != 1 {
		t.Errorf("captures: have %+v", have.Writes)
	}
}

// Every reason belongs to one side, and what is counted as a fallback is on the
// primary's.
func TestWhereReasonsBelong(t *testing.T) {
	for _, why := range policy.Reasons() {
		where := whereOf(why)
		onReplica := why > policy.Undecided && why < policy.ServedStale
		if onReplica != (where == "replica") || why.Fallback() != (where == "fallback") {
			t.Errorf("%s: have %s", why, where)
		}
	}
	for why, want := range map[policy.Reason]string{policy.Undecided: "not routed", policy.Behind: "fallback", policy.NoneHealthy: "fallback", policy.ByDefault: "primary", policy.NotPure: "primary", policy.Overloaded: "failed", policy.ServedStale: "stale", policy.ByResolver: "unguarded"} {
		if have := whereOf(why); string(have) != want {
			t.Errorf("%s: have %s, want %s", why, have, want)
		}
	}
}

// The page says what is in force, not what was configured.
func TestHandlerShowsWhatIsInForce(t *testing.T) {
	a := newApp(t, Config{Fallback: policy.Fallback{Rate: 0.001, Burst: 1, Wait: NoWait}}, 900)
	is := func(mode string, normal, guaranteed bool, settings ...string) {
		t.Helper()
		page, _ := a.looks("/")
		_, have := a.looks("/status.json")
		if m := have.Mode; m.Name != mode || m.Normal != normal || m.Guaranteed != guaranteed || strings.Contains(page, `class="alarm`) == normal {
			t.Errorf("have %+v, want mode %s", m, mode)
		}
		for _, want := range settings {
			if !strings.Contains(fmt.Sprint(have.Settings), "{"+want+"}") {
				t.Errorf("have %v, want %s", have.Settings, want)
			}
		}
	}
	is("Normal", true, true, "Mode Normal", "Window none", "Fallback at most 0.001 a second, 1 at once; what is above waits not at all, then fails",
		"Rotation out above 1m0s, back after 10s below 10s, 1 always in, stuck after 10m0s")
	ctx, _ := withSession()
	a.write(a.db.WithContext(ctx))
	for range 3 {
		_ = a.db.WithContext(ctx).Raw("select 1").Scan(new([]int)).Error
	}
	if _, have := a.looks("/status.json"); have.All.Shed != 2 {
		t.Errorf("shed: have %+v", have.All)
	}
	tune := func(change func(*Tuning)) {
		t.Helper()
		if err := a.ryw.Tune(change); err != nil {
			t.Fatal(err)
		}
	}
	tune(func(tn *Tuning) {
		tn.Mode, tn.MaxWait, tn.Window, tn.Fallback, tn.Rotation.High = PrimaryOnly, NoWait, time.Second, policy.Fallback{}, NoRotation
	})
	is("PrimaryOnly", false, true, "Mode PrimaryOnly", "MaxWait no wait", "Window 1s", "Fallback no cap", "Rotation none")
	tune(func(tn *Tuning) {
		tn.Mode, tn.Fallback = PlainResolver, policy.Fallback{Concurrent: 3, Stale: true}
	})
	is("PlainResolver", false, false, "Mode PlainResolver", "Fallback at most 3 under way; what is above waits 250ms, then is served stale")
}

func TestHandlerShowsRotation(t *testing.T) {
	for want, s := range map[adminpage.State]NodeStatus{
		adminpage.CaughtUp:      {LagKnown: true},
		adminpage.OutOfRotation: {LagKnown: true, Lag: time.Minute, Out: time.Second},
		adminpage.Stuck:         {LagKnown: true, Lag: time.Minute, Out: time.Hour, Stuck: true},
	} {
		have := adminNode(&s, &watcher.State{Sample: watcher.Sample{Incarnation: 1, Standby: true}, Healthy: true, Proven: true})
		if have.State != want || have.Out != adminpage.Seconds(s.Out) || have.Stuck != s.Stuck {
			t.Errorf("have %+v, want %s", have, want)
		}
	}
}

func TestHandlerEndsWithThePlugin(t *testing.T) {
	leakcheck.Check(t, poolsOwn...)
	a := newApp(t, Config{}, 1000)
	if a.ryw.Handler() != a.ryw.Handler() {
		t.Error("two calls have two handlers")
	}
	if err := a.ryw.Close(); err != nil {
		t.Error(err)
	}
	if have := a.states(); have[1] != "unknown" {
		t.Errorf("after Close: have %v", have)
	}
	late := New(Config{}) // closed before anybody looks
	if err := late.Close(); err != nil {
		t.Error(err)
	}
	late.Handler()
	pool, err := a.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	_ = pool.Close() // which the check would find
	a.primary.Close()
	for _, r := range a.replicas {
		r.Close()
	}
}

func TestHandlerWhileThePluginCloses(t *testing.T) {
	for range 20 {
		a := newApp(t, Config{}, 1000)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.ryw.Handler()
			a.states()
		}()
		_ = a.ryw.Close()
		<-done
		_ = a.ryw.Close()
	}
}
