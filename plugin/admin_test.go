package rywplugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
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
		if onReplica := why > policy.Undecided && why < policy.ByStrong; onReplica != (where == "replica") {
			t.Errorf("%s: have %s", why, where)
		}
	}
	for why, want := range map[policy.Reason]string{policy.Undecided: "not routed", policy.Behind: "fallback", policy.NoneHealthy: "fallback", policy.ByDefault: "primary", policy.NotPure: "primary"} {
		if have := whereOf(why); string(have) != want {
			t.Errorf("%s: have %s, want %s", why, have, want)
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
