package rywredis

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywhttp"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/redis/go-redis/v9"
)

// server is a Redis of the test's own, on a socket.
type server struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
	client *redis.Client
}

func newServer(t *testing.T) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not in the PATH: apt install redis-server")
	}
	s := &server{t: t, socket: filepath.Join(t.TempDir(), "redis")}
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, MaxRetries: -1})
	s.start()
	t.Cleanup(func() {
		_ = s.client.Close()
		s.kill()
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--save", "", "--dir", s.t.TempDir())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(20 * time.Second); s.client.Ping(s.t.Context()).Err() != nil; <-poll.C {
		if time.Now().After(deadline) {
			s.t.Fatal("redis-server does not answer")
		}
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it says that it was killed
}

func (s *server) store(cfg Config) *Store {
	s.t.Helper()
	store, err := New(s.client, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return store
}

func load(t *testing.T, s *Store, key string) []string {
	t.Helper()
	texts, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	return texts
}

func put(t *testing.T, s *Store, key, text string, includes ...string) {
	t.Helper()
	if err := s.Put(t.Context(), key, text, includes); err != nil {
		t.Fatal(err)
	}
}

func TestPutAddsAndRemovesWhatItIncludes(t *testing.T) {
	s := newServer(t).store(Config{})
	if have := load(t, s, "ann"); len(have) != 0 {
		t.Errorf("have %q", have)
	}
	put(t, s, "ann", "a")
	put(t, s, "ann", "b") // which has not seen a
	put(t, s, "bob", "x")
	if have := load(t, s, "ann"); !slices.Equal(have, []string{"a", "b"}) {
		t.Errorf("have %q", have)
	}
	put(t, s, "ann", "c", "a")
	if have := load(t, s, "ann"); !slices.Equal(have, []string{"b", "c"}) {
		t.Errorf("have %q", have)
	}
	put(t, s, "ann", "c", "b", "c") // the same text again
	if have := load(t, s, "ann"); !slices.Equal(have, []string{"c"}) {
		t.Errorf("have %q", have)
	}
}

func TestKeysExpireSomeTimeAfterTheLastPut(t *testing.T) {
	srv := newServer(t)
	s := srv.store(Config{Prefix: "shop:", Age: time.Hour})
	put(t, s, "ann", "a")
	put(t, s, "ann", "b", "a")
	ttl, err := srv.client.PTTL(t.Context(), "shop:ann").Result()
	if err != nil || ttl <= 59*time.Minute || ttl > time.Hour {
		t.Errorf("have %s, %v", ttl, err)
	}
	other := srv.store(Config{})
	put(t, other, "ann", "x")
	if ttl := srv.client.PTTL(t.Context(), "ryw:ann").Val(); ttl <= 23*time.Hour || ttl > 24*time.Hour {
		t.Errorf("by default: have %s", ttl)
	}
}

var here = token.Key{System: 11}

func text(lsn int) string {
	return token.FromEntries(token.Entry{Key: here, Write: token.Position{Timeline: 1, LSN: token.LSN(lsn)}}).String()
}

func newest(t *testing.T, texts []string) (lsn int) {
	t.Helper()
	for _, text := range texts {
		tok, err := token.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		lsn = max(lsn, int(tok.At(0).Write.LSN))
	}
	return lsn
}

// Whatever runs at the same time, what was put is not less afterwards.
func TestConcurrentPutsAreMonotonic(t *testing.T) {
	s := newServer(t).store(Config{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				mine := 1 + 8*j + i
				seen := load(t, s, "ann")
				put(t, s, "ann", text(max(mine, newest(t, seen))), seen...)
				if have := newest(t, load(t, s, "ann")); have < mine {
					t.Errorf("have %d, want %d", have, mine)
				}
			}
		})
	}
	all.Wait()
	if have := load(t, s, "ann"); len(have) > 8 || newest(t, have) != 320 {
		t.Errorf("have %d texts, the newest %d", len(have), newest(t, have))
	}
}

// site is two processes of a site that share the store, for clients that keep nothing.
func site(t *testing.T, srv *server, do func(s *session.Session)) (http.Handler, *rywhttp.Middleware) {
	t.Helper()
	ryw, err := rywhttp.New(rywhttp.Config{
		Store: srv.store(Config{}), StoreKey: func(r *http.Request) string { return r.Header.Get("User") },
		StoreTimeout: 5 * time.Second, NoHeader: true, NoCookies: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ryw.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s, _ := session.FromContext(r.Context())
		do(s)
	})), ryw
}

func visit(h http.Handler) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("User", "ann")
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// needOf says what a request has to see.
func needOf(s *session.Session) string {
	var n session.Need
	s.Need(&n, here, time.Time{})
	return fmt.Sprintf("marked %t, position %s", n.Marked, n.Position)
}

func TestTwoDevicesAndALostStore(t *testing.T) {
	srv := newServer(t)
	write, _ := site(t, srv, func(s *session.Session) {
		tok, _ := token.Parse(text(0x77))
		s.Observe(tok)
	})
	var need string
	read, stats := site(t, srv, func(s *session.Session) { need = needOf(s) })
	visit(write)
	if visit(read); need != "marked false, position 1:0/77" {
		t.Errorf("the other device: have %s", need)
	}
	srv.kill()
	if visit(read); need != "marked true, position none" || stats.Stats().StoreFailed != 1 {
		t.Errorf("down: have %s, %+v", need, stats.Stats())
	}
	srv.start() // with nothing in it
	if visit(read); need != "marked true, position none" || stats.Stats().Missing != 2 {
		t.Errorf("lost: have %s, %+v", need, stats.Stats())
	}
}

func TestAServerThatIsDown(t *testing.T) {
	srv := newServer(t)
	s := srv.store(Config{})
	srv.kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.Load(ctx, "ann"); err == nil || !strings.HasPrefix(err.Error(), "rywredis: load: ") {
		t.Errorf("have %v", err)
	}
	if err := s.Put(ctx, "ann", "a", nil); err == nil || !strings.HasPrefix(err.Error(), "rywredis: put: ") {
		t.Errorf("have %v", err)
	}
	srv.start()
}

func TestConfigurationsThatMakeNoSense(t *testing.T) {
	c := redis.NewClient(&redis.Options{})
	defer func() { _ = c.Close() }()
	if _, err := New(nil, Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("have %v", err)
	}
	if _, err := New(c, Config{Age: time.Millisecond}); !errors.Is(err, ErrConfig) {
		t.Errorf("have %v", err)
	}
}
