package adminpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
)

// script is a source that says what it is told to.
type script struct {
	mu        sync.Mutex // protects what follows
	nodes     []Node
	reads     []Reads
	decisions []Decision
	mode      Mode
}

func (s *script) Mode() Mode {
	if s.mode.Name == "" {
		return Mode{Name: "Normal", Normal: true, Guaranteed: true}
	}
	return s.mode
}

func (s *script) Nodes() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Node(nil), s.nodes...)
}

func (s *script) Reads() []Reads {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Reads(nil), s.reads...)
}

func (s *script) Writes() Writes { return Writes{Captures: 1234567, Failures: 1, Marks: 2, Queries: 9} }

func (s *script) Decisions() []Decision { return s.decisions }

func (s *script) Settings() []Setting { return []Setting{{"MaxWait", "10ms"}} }

// typical has a primary, and a replica that is behind.
func typical() *script {
	return &script{
		nodes: []Node{
			{Name: "p:1", Primary: true, State: Serving, Position: "1:0/400", Age: 1},
			{Name: "r:1", State: Behind, Position: "1:0/3E8", Gap: 24, Lag: Seconds(1500 * time.Millisecond), LagKnown: true, Age: 1, Paused: true},
		},
		reads: []Reads{{Reason: "caught up", Where: ToReplica, Count: 6}, {Reason: "behind", Where: FellBack, Count: 2}, {Reason: "strong", Where: ByRule, Count: 2}, {Reason: "never", Where: FellBack}, {Reason: "tx", Where: NotCounted, Count: 50}},
		decisions: []Decision{
			{Node: "primary", Reason: "behind", Where: FellBack, Gap: 24, Waited: Seconds(time.Millisecond), Lost: true},
			{Node: "r:1", Reason: "caught up", Where: ToReplica},
		},
	}
}

func get(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Pages and their twins are told apart under any prefix, stripped or not.
func TestWhatIsAskedFor(t *testing.T) {
	p := New(typical())
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tc := range []struct {
		path, accept string
		json         bool
	}{
		{"/", browser, false},
		{"/", "", false},
		{"/", "*/*", false},
		{"/admin/ryw/", browser, false},
		{"/?format=json", browser, true},
		{"/?format=html", "application/json", false},
		{"/status.json", browser, true},
		{"/admin/ryw/status.json", "", true},
		{"/", "application/json", true},
		{"/", "application/json, text/html", true},
		{"/", "text/html, application/json", false},
	} {
		for _, h := range []http.Handler{p, http.StripPrefix("/", p), http.StripPrefix("/admin", p)} {
			w := get(t, h, tc.path, "Accept", tc.accept)
			if w.Code == http.StatusNotFound { // not of that prefix
				continue
			}
			want := "text/html; charset=utf-8"
			if tc.json {
				want = "application/json"
			}
			if have := w.Header().Get("Content-Type"); w.Code != http.StatusOK || have != want {
				t.Errorf("%s for %q: have %d, %s, want %s", tc.path, tc.accept, w.Code, have, want)
			}
			if tc.json != json.Valid(w.Body.Bytes()) {
				t.Errorf("%s for %q: have %.60s", tc.path, tc.accept, w.Body)
			}
		}
	}
}

func TestNothingCanBeSent(t *testing.T) {
	p := New(typical())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: have %d, allowed %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

// Only what carries the nonce of this very answer runs, and nothing else is loaded.
func TestContentPolicy(t *testing.T) {
	p := New(typical())
	nonces := map[string]bool{}
	for range 2 {
		w := get(t, p, "/")
		policy, body := w.Header().Get("Content-Security-Policy"), w.Body.String()
		m := regexp.MustCompile(`script-src 'nonce-([A-Z0-9]{20,})'; style-src 'nonce-([A-Z0-9]{20,})'`).FindStringSubmatch(policy)
		if m == nil || m[1] != m[2] || !strings.HasPrefix(policy, "default-src 'none'; ") {
			t.Fatalf("have %q", policy)
		}
		nonces[m[1]] = true
		if have := strings.Count(body, `nonce="`+m[1]+`"`); have != 2 {
			t.Errorf("have %d elements with the nonce, want style and script", have)
		}
		if found := regexp.MustCompile(`(?i)<script(?:>| [^>]*src)|<link [^>]*href="[^d]|\bstyle="|\bon[a-z]+="|https?://`).FindString(body); found != "" {
			t.Errorf("the policy forbids %q", found)
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers: have %v", w.Header())
		}
	}
	if len(nonces) != 2 {
		t.Error("two answers have the same nonce")
	}
}

// What names of servers and reasons contain is text.
func TestTextIsEscaped(t *testing.T) {
	s := typical()
	const evil = `<b onclick="x()">"'&</b>`
	s.nodes[1].Name, s.nodes[1].Reason, s.reads[0].Reason, s.decisions[0].Reason = evil, evil, evil, evil
	p := New(s)
	p.remember(time.Now())
	s.nodes[1].State = Unknown
	p.remember(time.Now())
	if body := get(t, p, "/?reason="+evil[:2]).Body.String(); strings.Contains(body, "<b ") {
		t.Errorf("not escaped:\n%s", body)
	}
}

func TestPageSays(t *testing.T) {
	s := typical()
	p := New(s)
	p.remember(time.Now())
	s.nodes[1].State = CaughtUp
	p.remember(time.Now())
	body := get(t, p, "/").Body.String()
	for _, want := range []string{
		"1 of 1 replicas caught up", `data-node="r:1" data-state="caught up"`, "replay paused", "24 B", "1.5 s",
		"behind → caught up", "1\u202f234\u202f567", "possibly lost", "60.0 %", "25.0 %", "<dt>MaxWait</dt><dd>10ms</dd>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("not on the page: %s", want)
		}
	}
	if strings.Contains(body, "<th scope=\"row\">never</th>") {
		t.Error("a reason without reads is on the page")
	}
	if empty := get(t, New(&script{}), "/").Body.String(); !strings.Contains(empty, "not in use yet") {
		t.Error("a plugin that is not in use: not said")
	}
}

// What nobody is to overlook is above everything else, and in the tab.
func TestAlarms(t *testing.T) {
	s := typical()
	p := New(s)
	now := time.Now()
	p.remember(now.Add(-time.Minute))
	loud := regexp.MustCompile(`<p class="alarm (\w+)"><svg[^>]*><use href="[^"]*"/></svg><span>([^<]*)</span>`)
	ago := regexp.MustCompile(`last \d+ s`)
	for _, step := range []struct {
		what   string
		change func()
		want   string
		title  string
	}{
		{"nothing", func() {}, "[]", "<title>0 of 1"},
		{"reads of long ago", func() { s.reads[4] = Reads{Reason: "shed", Where: Failed}; s.reads[4].Count = 0 }, "[]", "<title>0 of 1"},
		{"shed reads", func() { s.reads[4].Count = 60 }, "[bad: Too many reads fall back: 10 were kept from the primary in the last N s. They failed or were served stale.]", "<title>0 of 1"},
		{"primary only", func() {
			s.reads[4].Count = 50
			s.mode = Mode{Name: "PrimaryOnly", Means: "all there", Guaranteed: true}
		}, "[warn: Mode PrimaryOnly: all there.]", "<title>Mode PrimaryOnly! 0 of 1"},
		{"plain", func() { s.mode = Mode{Name: "PlainResolver", Means: "STALE"} }, "[bad: Mode PlainResolver: STALE.]", "<title>Mode PlainResolver! 0 of 1"},
	} {
		step.change()
		body := get(t, p, "/").Body.String()
		have := []string{}
		for _, m := range loud.FindAllStringSubmatch(body, -1) {
			have = append(have, m[1]+": "+ago.ReplaceAllString(m[2], "last N s"))
		}
		if fmt.Sprint(have) != step.want || !strings.Contains(body, step.title) {
			t.Errorf("%s: have %q, want %s, %s", step.what, have, step.want, step.title)
		}
		var twin Snapshot
		decode(t, get(t, p, "/status.json"), &twin)
		if twin.Mode != s.Mode() {
			t.Errorf("%s: have %+v in the twin", step.what, twin.Mode)
		}
	}
}

func TestRotationIsShown(t *testing.T) {
	s := typical()
	s.nodes[1].State, s.nodes[1].Out, s.nodes[1].Paused = OutOfRotation, Seconds(3*time.Minute), false
	if body := get(t, New(s), "/").Body.String(); !strings.Contains(body, `data-state="out of rotation"`) || !strings.Contains(body, ">out of rotation for 3 min<") {
		t.Errorf("not shown:\n%s", body)
	}
	s.nodes[1].State, s.nodes[1].Stuck = Stuck, true
	w := get(t, New(s), "/status.json").Body.String()
	for _, want := range []string{`"state": "stuck"`, `"out_of_rotation_seconds": 180,`, `"stuck": true`} {
		if !strings.Contains(w, want) {
			t.Errorf("not in the twin: %s", want)
		}
	}
}

func TestFilter(t *testing.T) {
	p := New(typical())
	for query, want := range map[string]int{
		"": 2, "reason=behind": 1, "reason=none+such": 0, "where=replica": 1, "node=r:1": 1, "where=replica&node=primary": 0, "where=fallback&reason=behind&node=primary": 1,
	} {
		var s Snapshot
		decode(t, get(t, p, "/status.json?"+query), &s)
		if len(s.Decisions) != want {
			t.Errorf("%q: have %d decisions, want %d", query, len(s.Decisions), want)
		}
		body := get(t, p, "/?"+query).Body.String()
		if have := strings.Count(body, "<tr data-reason="); have != want {
			t.Errorf("%q: have %d decisions on the page, want %d", query, have, want)
		}
	}
	if body := get(t, p, "/?reason=behind").Body.String(); !strings.Contains(body, `<option value="behind" selected>`) {
		t.Error("the chosen reason is not selected")
	}
}

// decode reads a twin; durations are numbers of seconds there.
func decode(t *testing.T, w *httptest.ResponseRecorder, into *Snapshot) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

// UnmarshalJSON is for these tests.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var f float64
	err := json.Unmarshal(b, &f)
	*s = Seconds(f * float64(time.Second))
	return err
}

func TestRecentReads(t *testing.T) {
	src := typical()
	p := New(src)
	now := time.Now()
	src.reads[0].Count, src.reads[1].Count = 1, 1
	p.remember(now.Add(-recently - time.Second)) // too old
	src.reads[0].Count, src.reads[1].Count = 3, 2
	p.remember(now.Add(-recently + time.Second))
	src.reads[0].Count, src.reads[1].Count = 6, 3
	s := p.snapshot(now, Filter{})
	if want := (Shares{Count: 4, Replicas: 3, Fallbacks: 1, ReplicaShare: .75, FallbackShare: .25}); s.Recent != want {
		t.Errorf("recent: have %+v, want %+v", s.Recent, want)
	}
	if s.Since != Seconds(recently-time.Second) {
		t.Errorf("since: have %s", time.Duration(s.Since))
	}
	if want := (Shares{Count: 11, Replicas: 6, Fallbacks: 3, ReplicaShare: 6. / 11, FallbackShare: 3. / 9}); s.All != want {
		t.Errorf("all: have %+v, want %+v", s.All, want)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	src := typical()
	p := New(src)
	start := time.Now()
	for i := range 3 * points {
		src.nodes[1].State = []State{Behind, CaughtUp}[i%2]
		src.nodes[1].Gap = uint64(i)
		p.remember(start.Add(time.Duration(i) * Step))
	}
	past, changes := p.memory()
	if len(past) != points || past[0].nodes[1].Gap != uint64(2*points) || len(changes) != changesKept {
		t.Errorf("have %d points from %d on, %d changes", len(past), past[0].nodes[1].Gap, len(changes))
	}
	if last := changes[len(changes)-1]; last.To != src.nodes[1].State || last.Node != "r:1" {
		t.Errorf("last change: have %+v", last)
	}
	if cap(p.past) > 2*points {
		t.Errorf("room for %d points", cap(p.past))
	}
}

func TestPageEnds(t *testing.T) {
	leakcheck.Check(t)
	p := New(typical())
	p.Start()
	p.Start()
	var all sync.WaitGroup
	for range 4 {
		all.Go(p.Close)
		all.Go(func() { get(t, p, "/") })
	}
	all.Wait()
	New(typical()).Close() // never started
	(*Page)(nil).Close()
}

func TestPageRemembersByItself(t *testing.T) {
	p := New(typical())
	tick := make(chan time.Time)
	p.done.Go(func() { p.run(tick) })
	for i := range 3 {
		tick <- time.Now().Add(time.Duration(i) * Step)
	}
	p.Close()
	if past, _ := p.memory(); len(past) != 4 {
		t.Errorf("have %d points, want one at the start and one for each tick", len(past))
	}
}

func ExamplePage() {
	w := httptest.NewRecorder()
	http.StripPrefix("/admin", New(typical())).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/admin/status.json", nil))
	var s struct {
		Nodes []struct {
			Name  string  `json:"name"`
			State string  `json:"state"`
			Lag   float64 `json:"lag_seconds"`
		} `json:"nodes"`
	}
	fmt.Println(json.Unmarshal(w.Body.Bytes(), &s), s.Nodes)
	// Output: <nil> [{p:1 primary 0} {r:1 behind 1.5}]
}
