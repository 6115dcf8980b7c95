package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The processes of the tests are this test binary, told to be the program.
func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// chain is a browser before two processes of a site, a worker behind, and two
// replicas that stand still.
type chain struct {
	t       *testing.T
	ctx     context.Context
	site    *site
	front   *httptest.Server
	browser *http.Client
}

func newChain(t *testing.T, drop string) *chain {
	c := &chain{t: t, ctx: t.Context(), site: &site{}, browser: &http.Client{}}
	t.Cleanup(func() {
		if err := c.site.stop(); err != nil {
			t.Error(err)
		}
	})
	c.must(c.site.start(c.ctx, 2, drop))
	for _, r := range c.site.cluster.Replicas() {
		c.must(r.PauseReplay(c.ctx))
	}
	front := roundRobin(c.site.apps...)
	if drop == "proxy" {
		front = withoutCookies(front)
	}
	c.front = httptest.NewServer(front)
	t.Cleanup(c.front.Close)
	if drop != "browser" {
		jar, err := cookiejar.New(nil)
		c.must(err)
		c.browser.Jar = jar
	}
	return c
}

// withoutCookies is a proxy that somebody configured to keep cookies out.
func withoutCookies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Cookie")
		h.ServeHTTP(w, r)
	})
}

func (c *chain) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) visit(method, path, text string) seen {
	c.t.Helper()
	v, err := visit(c.ctx, c.browser, method, c.front.URL+"/notes/1"+path, text)
	c.must(err)
	return v
}

// worked returns what the worker saw for the newest job.
func (c *chain) worked() (saw, where string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	conn, err := c.site.cluster.Primary().Conn(ctx)
	c.must(err)
	defer conn.Close(context.WithoutCancel(ctx))
	const query = `select done, saw, "where" from jobs order by id desc limit 1`
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for done := false; !done; <-poll.C {
		c.must(conn.QueryRow(ctx, query).Scan(&done, &saw, &where))
	}
	return saw, where
}

// A write in a browser is seen by the next process, by the job it triggered and by a
// second service, although no replica has it; and a replica serves as soon as it does.
func TestEverybodySeesTheWrite(t *testing.T) {
	c := newChain(t, "")
	for i := range 4 {
		want := fmt.Sprint("new ", i)
		v := c.visit(http.MethodPatch, "", want)
		if v.Text != want || v.Node != "primary" || v.Process != "BA"[i%2:i%2+1] {
			t.Errorf("the browser: have %+v, want %q", v, want)
		}
		if saw, where := c.worked(); saw != want {
			t.Errorf("the worker: have %q from %s, want %q", saw, where, want)
		}
		if v := c.visit(http.MethodGet, "/elsewhere", ""); v.Text != want || v.Process != "reader" {
			t.Errorf("the second service: have %+v, want %q", v, want)
		}
		if v := c.visit(http.MethodGet, "", ""); v.Text != want {
			t.Errorf("a reload: have %+v, want %q", v, want)
		}
		c.visit(http.MethodGet, "", "") // so that the next write goes to the other process
	}
	for _, r := range c.site.cluster.Replicas() {
		c.must(r.ResumeReplay(c.ctx))
	}
	c.must(c.site.cluster.WaitReplicated(c.ctx))
	if v := c.visit(http.MethodGet, "", ""); v.Text != "new 3" || v.Node == "primary" {
		t.Errorf("with replicas that have it: have %+v", v)
	}
}

// Without any one of the hops the write is not seen: the test above is about them.
func TestEveryHopCounts(t *testing.T) {
	for drop, want := range map[string]struct{ browser, worker, service string }{
		"browser": {"old", "new", "old"}, // keeps no cookies
		"proxy":   {"old", "new", "old"}, // lets none through
		"app":     {"old", "new", "old"}, // runs without the middleware
		"job":     {"new", "old", "new"}, // is enqueued without the token
		"worker":  {"new", "old", "new"}, // does not take it out
		"client":  {"new", "new", "old"}, // calls the service without the interceptor
		"reader":  {"new", "new", "old"}, // serves without it
	} {
		t.Run(drop, func(t *testing.T) {
			c := newChain(t, drop)
			if v := c.visit(http.MethodPatch, "", "new"); v.Text != want.browser {
				t.Errorf("the browser: have %+v, want %q", v, want.browser)
			}
			if saw, where := c.worked(); saw != want.worker {
				t.Errorf("the worker: have %q from %s, want %q", saw, where, want.worker)
			}
			if v := c.visit(http.MethodGet, "/elsewhere", ""); v.Text != want.service {
				t.Errorf("the second service: have %+v, want %q", v, want.service)
			}
		})
	}
}

// A browser that has written nothing reads from a replica.
func TestAnotherBrowser(t *testing.T) {
	c := newChain(t, "")
	c.visit(http.MethodPatch, "", "new")
	v, err := visit(c.ctx, &http.Client{}, http.MethodGet, c.front.URL+"/notes/1", "")
	if err != nil || v.Text != "old" || v.Node == "primary" {
		t.Errorf("have %+v, %v", v, err)
	}
}

func TestDemo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "looks elsewhere") != 8 || !strings.Contains(string(out), "saves version 8") {
		t.Errorf("have %v\n%s", err, out)
	}
}
