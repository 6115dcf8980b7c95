package rywhttp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Store keeps tokens for whoever cannot: one user's several devices, clients that
// drop cookies, an entity that many work on. What is under a key is a set of texts,
// so that requests which run at the same time add to it and take away only what
// they have seen. It must be safe for concurrent use.
//
// A key without texts is a missing token, whether it was never there, has expired or
// was lost. With MissingStrong, the loss of a store is never a stale read.
//
// What could not be put is remembered in the process, which has its own requests under
// the key see it, and puts it when the store is back. Until then only other processes
// that reach the store all the same do not know of it; with Config.Strict no client is
// told of a success that the store could not be told of.
type Store interface {
	// Load returns the texts under a key in any order, none if there are none.
	Load(ctx context.Context, key string) ([]string, error)
	// Put adds a text under a key, and then removes those that it includes. The key
	// lives on from now.
	Put(ctx context.Context, key, text string, includes []string) error
}

// DefaultStoreTimeout is Config.StoreTimeout.
const DefaultStoreTimeout = 200 * time.Millisecond

// stored is what a request has to do with a store. The zero value is nothing.
type stored struct {
	key   string
	texts []string    // as loaded, and then as put
	owed  token.Token // what earlier requests could not put
}

// load reads what the store has for a request: once, however many queries it makes.
func (m *Middleware) load(r *http.Request, in *received) {
	if m.cfg.Store == nil {
		return
	}
	if in.stored.key = m.cfg.StoreKey(r); in.stored.key == "" {
		return
	}
	if t, ok := m.owed.of(in.stored.key); ok {
		in.add(t, nil)
		in.stored.owed = t
	}
	ctx, cancel := context.WithTimeout(r.Context(), m.cfg.StoreTimeout)
	defer cancel()
	texts, err := m.cfg.Store.Load(ctx, in.stored.key)
	if err != nil {
		m.stats.storeFailed.Add(1)
		in.unknown = true
		return
	}
	for i, text := range texts {
		t, err := token.Parse(text)
		if err != nil || i == MaxCookies {
			in.unknown = true
			break
		}
		in.add(t, nil)
	}
	in.stored.texts = texts
}

// put writes back what the session did, and reports whether the store has it or need
// not. The client's own going away is no reason not to.
func (m *Middleware) put(r *http.Request, in *received, did session.Changes) (ok bool) {
	at := &in.stored
	if at.key == "" || !did.Wrote && !did.Read && !did.Open && at.owed.IsZero() {
		return true
	}
	ctx := context.WithoutCancel(r.Context())
	t := withOpen(did)
	text := t.String()
	if !m.putText(ctx, at.key, text, at.texts) {
		m.owed.add(at.key, t)
		return false
	}
	m.owed.settle(at.key, at.owed)
	at.texts, at.owed = []string{text}, token.Token{}
	if key, t, ok := m.owed.any(); ok && m.putText(ctx, key, t.String(), nil) { // the store is back
		m.owed.settle(key, t)
	}
	return true
}

func (m *Middleware) putText(ctx context.Context, key, text string, includes []string) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	if err := m.cfg.Store.Put(ctx, key, text, includes); err != nil {
		m.stats.storeFailed.Add(1)
		return false
	}
	return true
}

// MemoryStore is a Store for one process. Made by NewMemoryStore.
type MemoryStore struct {
	age time.Duration
	max int
	now func() time.Time

	mu   sync.Mutex // protects keys
	keys map[string]*shelf
}

// shelf is what is under a key.
type shelf struct {
	texts map[string]struct{}
	until time.Time
}

// NewMemoryStore returns a store that forgets a key some time after its last Put, and
// some key when there are more than max. An age of zero means DefaultCookieAge, a max
// of zero no bound.
func NewMemoryStore(age time.Duration, maxKeys int) *MemoryStore {
	setDefault(&age, DefaultCookieAge)
	return &MemoryStore{age: age, max: maxKeys, now: time.Now, keys: map[string]*shelf{}}
}

// Load implements Store; it never fails.
func (s *MemoryStore) Load(_ context.Context, key string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.keys[key]
	if at == nil || at.until.Before(s.now()) {
		return nil, nil
	}
	texts := make([]string, 0, len(at.texts))
	for text := range at.texts {
		texts = append(texts, text)
	}
	return texts, nil
}

// Put implements Store; it never fails.
func (s *MemoryStore) Put(_ context.Context, key, text string, includes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	at := s.keys[key]
	if at == nil || at.until.Before(now) {
		s.makeRoom(now)
		at = &shelf{texts: map[string]struct{}{}}
		s.keys[key] = at
	}
	for _, old := range includes {
		delete(at.texts, old)
	}
	at.texts[text] = struct{}{}
	at.until = now.Add(s.age)
	return nil
}

// makeRoom forgets a few keys that have expired, and any one if there must be room.
// Whoever loses one reads what is current. It looks at so few that a Put stays
// quick, and at more than are added.
func (s *MemoryStore) makeRoom(now time.Time) {
	looked := 0
	for key, at := range s.keys {
		full := s.max > 0 && len(s.keys) >= s.max
		if full || at.until.Before(now) {
			delete(s.keys, key)
		}
		if looked++; looked == 8 {
			return
		}
	}
}
