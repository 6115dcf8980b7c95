package rywhttp

import (
	"sync"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// maxOwed bounds the keys of which something is owed to a store that is down.
const maxOwed = 4096

// owed is what could not be put into a store. The zero value is nothing. Safe for
// concurrent use.
type owed struct {
	mu     sync.Mutex // protects tokens
	tokens map[string]token.Token
}

// of returns what is owed under a key.
func (o *owed) of(key string) (token.Token, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tokens[key]
	return t, ok
}

// any returns some of it.
func (o *owed) any() (string, token.Token, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, t := range o.tokens {
		return key, t, true
	}
	return "", token.Token{}, false
}

// add adds to what is owed under a key. When there are too many keys, another one is
// forgotten.
func (o *owed) add(key string, t token.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tokens == nil {
		o.tokens = map[string]token.Token{}
	}
	before, known := o.tokens[key]
	if !known && len(o.tokens) == maxOwed {
		for other := range o.tokens {
			delete(o.tokens, other)
			break
		}
	}
	o.tokens[key] = before.Merge(t)
}

// settle takes away what was owed under a key and has been put, unless something was
// added meanwhile.
func (o *owed) settle(key string, put token.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.tokens[key]; ok && t.Equal(put) {
		delete(o.tokens, key)
	}
}
