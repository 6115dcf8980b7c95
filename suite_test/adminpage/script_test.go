package adminpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gorm-ryw/gorm-ryw/internal/adminpage"
)

// scripted is a page of no servers, which can be made to fail.
type scripted struct {
	behind  atomic.Bool
	failing atomic.Bool
}

func (s *scripted) Mode() adminpage.Mode {
	return adminpage.Mode{Name: "Normal", Normal: true, Guaranteed: true}
}

func (s *scripted) Nodes() []adminpage.Node {
	return []adminpage.Node{
		{Name: "p:1", Primary: true, State: adminpage.Serving, Position: "1:0/1"},
		{Name: "r:1", State: adminpage.CaughtUp, Position: "1:0/1", LagKnown: true},
	}
}

func (s *scripted) Reads() []adminpage.Reads {
	reads := []adminpage.Reads{{Reason: "caught up", Where: adminpage.ToReplica, Count: 2}, {Reason: "behind", Where: adminpage.FellBack}}
	if s.behind.Load() {
		reads[1].Count = 1
	}
	return reads
}

func (s *scripted) Writes() adminpage.Writes { return adminpage.Writes{} }

func (s *scripted) Decisions() []adminpage.Decision {
	all := []adminpage.Decision{
		{Node: "r:1", Reason: "caught up", Where: adminpage.ToReplica}, {Node: "r:2", Reason: "caught up", Where: adminpage.ToReplica},
	}
	if s.behind.Load() {
		all = append(all, adminpage.Decision{Node: "primary", Reason: "behind", Where: adminpage.FellBack})
	}
	return all
}

func (s *scripted) Settings() []adminpage.Setting { return nil }

// opened has the page of s in a browser.
func (s *scripted) opened(t *testing.T) *browser {
	t.Helper()
	b := newBrowser(t)
	page := adminpage.New(s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.failing.Load() {
			http.Error(w, "as told", http.StatusServiceUnavailable)
			return
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.do(chromedp.Navigate(server.URL))
	return b
}

func choose(field, value string) string {
	return fmt.Sprintf(`(() => { const s = document.querySelector('select[name=%s]'); s.value = %q; s.dispatchEvent(new Event('change', {bubbles: true})); return s.value })()`, field, value)
}

// Decisions are narrowed down without the page being opened again, by what has come
// up since.
func TestFilter(t *testing.T) {
	s := &scripted{}
	b := s.opened(t)
	value[string](b, "window.opened = 'once'")
	const shown = `[...document.querySelectorAll('#decisions tr')].map(r => r.dataset.reason).join()`
	b.await("both decisions", shown+" === 'caught up,caught up'")
	s.behind.Store(true)
	b.await("a new reason to choose", `[...document.querySelectorAll('select[name=reason] option')].some(o => o.value === 'behind')`)
	for _, step := range []struct{ field, value, shows string }{
		{"reason", "behind", "behind"},
		{"where", "replica", ""},
		{"reason", "", "caught up,caught up"},
		{"where", "fallback", "behind"},
		{"node", "r:1", ""},
		{"node", "", "behind"},
		{"where", "", "caught up,caught up,behind"},
	} {
		if have := value[string](b, choose(step.field, step.value)); have != step.value {
			t.Errorf("choice of %s: have %q, want %q", step.field, have, step.value)
		}
		b.await(fmt.Sprintf("%s %q", step.field, step.value), fmt.Sprintf("%s === %q", shown, step.shows))
	}
	if have := value[string](b, "String(window.opened)"); have != "once" {
		t.Errorf("the page was opened again: have %s", have)
	}
}

func TestPause(t *testing.T) {
	s := &scripted{}
	b := s.opened(t)
	const press = "document.getElementById('pause').click(), document.getElementById('pause').getAttribute('aria-pressed')"
	if have := value[string](b, press); have != "true" {
		t.Errorf("pressed: have %q", have)
	}
	time.Sleep(time.Second) // an answer may be on its way
	const rows = "document.querySelectorAll('#decisions tr').length"
	s.behind.Store(true)
	time.Sleep(3 * time.Second) // longer than from one update to the next
	if have := value[int](b, rows); have != 2 {
		t.Errorf("updated while paused: have %d decisions", have)
	}
	value[string](b, press)
	b.await("an update", rows+" === 3")
}

// What is old is said to be, and no longer when it is not.
func TestNoAnswer(t *testing.T) {
	s := &scripted{}
	b := s.opened(t)
	const says = "document.getElementById('stale').textContent"
	s.failing.Store(true)
	b.await("that it is old", says+".startsWith('No answer since ')")
	if have := value[int](b, "document.querySelectorAll('#nodes tr[data-node]').length"); have != 2 {
		t.Errorf("what was known is gone: have %d servers", have)
	}
	s.failing.Store(false)
	b.await("that it is not", says+" === ''")
}
