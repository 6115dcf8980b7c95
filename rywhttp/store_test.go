package rywhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// byUser is a site whose store goes by the user, and whose clients drop everything
// else.
func byUser(t *testing.T, store Store, cfg Config) *Middleware {
	t.Helper()
	cfg.Store, cfg.StoreKey = store, func(r *http.Request) string { return r.Header.Get("User") }
	return middleware(t, cfg)
}

func as(user string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("User", user) }
}

// texts is a store that counts, or fails.
type texts struct {
	Store
	loads, puts int
	err         error
	last        context.Context
}

func (s *texts) Load(ctx context.Context, key string) ([]string, error) {
	s.loads, s.last = s.loads+1, ctx
	if err := errors.Join(s.err, ctx.Err()); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, key)
}

func (s *texts) Put(ctx context.Context, key, text string, includes []string) error {
	s.puts, s.last = s.puts+1, ctx
	if err := errors.Join(s.err, ctx.Err()); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, text, includes)
}

func TestAUsersOtherDevice(t *testing.T) {
	store := &texts{Store: NewMemoryStore(0, 0)}
	m := byUser(t, store, Config{NoHeader: true, NoCookies: true})
	wantNothing(t, call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) }), as("ann")))
	look := func(user string) (tok token.Token) {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { tok = s.Token() }), as(user))
		return tok
	}
	wantWrite(t, look("ann"), 77)
	if _, ok := look("bob").Entry(here); ok {
		t.Error("one user's token is another's")
	}
	if store.loads != 3 || store.puts != 1 {
		t.Errorf("have %d loads and %d puts, want one load a request, and one put", store.loads, store.puts)
	}
	if look(""); store.loads != 3 {
		t.Error("a request without a user asked the store")
	}
	if have := m.Stats(); have.Missing != 3 { // the first, bob's and nobody's
		t.Errorf("have %+v", have)
	}
}

// A mark is replaced by the position that was found for it, so it costs a query once.
func TestAStoreDoesNotKeepWhatIsResolved(t *testing.T) {
	store := NewMemoryStore(0, 0)
	m := byUser(t, store, Config{NoHeader: true, NoCookies: true})
	for i := range 10 {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { s.MarkWrote(here) }), as("ann"))
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, uint64(77+i)) }), as("ann"))
	}
	held, err := store.Load(t.Context(), "ann")
	if err != nil || len(held) != 1 {
		t.Fatalf("have %q, %v", held, err)
	}
	wantNeed(t, parsed(t, held[0]), 86)
}

// What comes after the headers is in the store all the same.
func TestAStoreLearnsOfLateWrites(t *testing.T) {
	store := NewMemoryStore(0, 0)
	m := byUser(t, store, Config{})
	call(wrap(t, m, func(w http.ResponseWriter, _ *http.Request, s *session.Session) {
		wrote(s, 70)
		s.BeginWrite()
		w.WriteHeader(200)
		s.EndWrite()
		wrote(s, 77)
	}), as("ann"))
	held, _ := store.Load(t.Context(), "ann")
	if len(held) != 1 {
		t.Fatalf("have %q", held)
	}
	wantNeed(t, parsed(t, held[0]), 77)
}

func TestAStoreThatIsDown(t *testing.T) {
	store := &texts{Store: NewMemoryStore(0, 0)}
	m := byUser(t, store, Config{Missing: MissingStale})
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) })
	call(h, as("ann"))
	store.err = errors.New("down")
	resp := call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		var n session.Need
		if s.Need(&n, here, time.Time{}); !n.Marked {
			t.Error("the request may be stale")
		}
		wrote(s, 78)
	}), as("ann"))
	wantWrite(t, tokenOf(t, resp), 78)
	if e, ok := tokenOf(t, resp).Entry(anybody); ok {
		t.Errorf("the stand-in travels: %+v", e)
	}
	if have := m.Stats(); have.StoreFailed != 2 {
		t.Errorf("have %+v, want two failures", have)
	}
	if _, ok := store.last.Deadline(); !ok || errors.Is(store.last.Err(), context.DeadlineExceeded) {
		t.Error("the store was asked without a deadline")
	}
	// Lost is as good as down.
	m = byUser(t, NewMemoryStore(0, 0), Config{})
	call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		var n session.Need
		if s.Need(&n, here, time.Time{}); !n.Marked {
			t.Error("a store that lost everything makes the request stale")
		}
	}), as("ann"))
}

// Nor does garbage in it.
func TestAStoreWithGarbage(t *testing.T) {
	store := NewMemoryStore(0, 0)
	_ = store.Put(t.Context(), "ann", "garbage", nil)
	m := byUser(t, store, Config{Missing: MissingStale})
	call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		var n session.Need
		if s.Need(&n, here, time.Time{}); !n.Marked {
			t.Error("the request may be stale")
		}
		read(s, 77)
	}), as("ann"))
	if held, _ := store.Load(t.Context(), "ann"); len(held) != 1 || held[0] == "garbage" {
		t.Errorf("have %q", held)
	}
}

// The client goes away; what it wrote stays.
func TestAStoreIsToldWithoutTheClient(t *testing.T) {
	store := NewMemoryStore(0, 0)
	h := wrap(t, byUser(t, &texts{Store: store}, Config{}), func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, 77) })
	call(h, func(r *http.Request) {
		as("ann")(r)
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ctx)
	})
	if held, _ := store.Load(t.Context(), "ann"); len(held) != 1 {
		t.Errorf("have %q", held)
	}
}

// Requests at the same time take away only what they have seen.
func TestAStoreUnderConcurrentRequests(t *testing.T) {
	store := NewMemoryStore(0, 0)
	m := byUser(t, store, Config{NoHeader: true, NoCookies: true})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				lsn := uint64(1 + 8*j + i)
				call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
					s.Advance(here, at(1, lsn), mono.Now(), true)
				}), as("ann"))
				held, _ := store.Load(t.Context(), "ann")
				var tok token.Token
				for _, text := range held {
					tok = tok.Merge(parsed(t, text))
				}
				if e, _ := tok.Entry(here); uint64(e.Write.LSN) < lsn {
					t.Errorf("have %s, want %d", e.Write, lsn)
				}
			}
		})
	}
	all.Wait()
}

func TestMemoryStoreForgets(t *testing.T) {
	now := time.Now()
	s := NewMemoryStore(time.Hour, 10)
	s.now = func() time.Time { return now }
	for i := range 50 {
		_ = s.Put(t.Context(), fmt.Sprint("user ", i), "x", nil)
		if len(s.keys) > 10 {
			t.Fatalf("have %d keys", len(s.keys))
		}
		if held, _ := s.Load(t.Context(), fmt.Sprint("user ", i)); len(held) != 1 {
			t.Fatalf("the newest has %q", held)
		}
	}
	now = now.Add(2 * time.Hour)
	if held, _ := s.Load(t.Context(), "user 49"); held != nil {
		t.Errorf("after its time: have %q", held)
	}
	_ = s.Put(t.Context(), "user 49", "y", nil)
	if held, _ := s.Load(t.Context(), "user 49"); len(held) != 1 || held[0] != "y" {
		t.Errorf("after its time it has %q", held)
	}
	s.max = 0
	for i := range 20 {
		_ = s.Put(t.Context(), fmt.Sprint("new ", i), "x", nil)
	}
	if len(s.keys) > 21 {
		t.Errorf("have %d keys, want those gone whose time is over", len(s.keys))
	}
}

// A store that was down while a user wrote does not know of it. The process does, and
// tells the store when it is back.
func TestWhatAStoreCouldNotTakeIsOwed(t *testing.T) {
	store := &texts{Store: NewMemoryStore(0, 0)}
	m := byUser(t, store, Config{NoHeader: true, NoCookies: true})
	write := func(user string, lsn uint64) {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { wrote(s, lsn) }), as(user))
	}
	look := func(m *Middleware, user string) (tok token.Token) {
		call(wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { tok = s.Token() }), as(user))
		return tok
	}
	write("ann", 50) // so that her key is there
	write("bob", 60)
	store.err = errors.New("down")
	write("ann", 77)
	write("bob", 88)
	if have := m.Stats().StoreFailed; have != 4 {
		t.Errorf("failures: have %d, want 4", have)
	}
	store.err = nil
	wantWrite(t, look(m, "ann"), 77) // reads nothing, and settles what is owed: hers, and with it another's
	other := byUser(t, store, Config{NoHeader: true, NoCookies: true})
	wantWrite(t, look(other, "ann"), 77)
	wantWrite(t, look(other, "bob"), 88)
	puts := store.puts
	if wantWrite(t, look(m, "ann"), 77); store.puts != puts {
		t.Error("put again what was settled")
	}
}

func TestOwedIsBounded(t *testing.T) {
	var o owed
	for i := range maxOwed + 10 {
		o.add(fmt.Sprint(i), token.FromLSN(1))
	}
	if have := len(o.tokens); have != maxOwed {
		t.Errorf("have %d keys, want %d", have, maxOwed)
	}
}

// What was added while a put was under way is still owed.
func TestOwedIsSettledByWhatWasPut(t *testing.T) {
	var o owed
	o.add("ann", token.FromLSN(4))
	o.add("ann", token.FromLSN(5))
	o.settle("ann", token.FromLSN(4))
	if _, ok := o.of("ann"); !ok {
		t.Error("settled by less")
	}
	o.settle("ann", token.FromLSN(5))
	if _, ok := o.of("ann"); ok {
		t.Error("not settled")
	}
}

// In strict mode nobody is told of a success that the store was not told of.
func TestStrictStore(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(w http.ResponseWriter, s *session.Session)
		fails bool
	}{
		"write, then answer":     {func(w http.ResponseWriter, s *session.Session) { wrote(s, 77); w.WriteHeader(201) }, true},
		"write, answer with 200": {func(_ http.ResponseWriter, s *session.Session) { wrote(s, 77) }, true},
		"read":                   {func(_ http.ResponseWriter, s *session.Session) { read(s, 77) }, false},
		"nothing":                {func(w http.ResponseWriter, _ *session.Session) { w.WriteHeader(204) }, false},
	} {
		for _, strict := range []bool{false, true} {
			store := &texts{Store: NewMemoryStore(0, 0)}
			m := byUser(t, store, Config{Strict: strict, Missing: MissingStale})
			store.err = errors.New("down")
			aborted := func() (aborted bool) {
				defer func() {
					err, _ := recover().(error)
					aborted = errors.Is(err, http.ErrAbortHandler)
				}()
				call(wrap(t, m, func(w http.ResponseWriter, _ *http.Request, s *session.Session) { c.do(w, s) }), as("ann"))
				return false
			}()
			if want := strict && c.fails; aborted != want {
				t.Errorf("%s, strict %v: aborted %v, want %v", name, strict, aborted, want)
			}
		}
	}
}
