package sqlread

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Bounds of a Classifier's cache of verdicts.
const (
	// CacheEntries is the largest number of texts kept.
	CacheEntries = 4096
	// CacheBytes bounds the bytes of the texts kept, with the bookkeeping of
	// each. When it is reached the cache starts again empty.
	CacheBytes = 4 << 20
	// CacheTextBytes is the length above which a text is not kept.
	CacheTextBytes = 8 << 10
)

const (
	cacheWays     = 4
	cacheSets     = CacheEntries / cacheWays
	entryOverhead = 128
)

type textKind uint8

const (
	statementText textKind = iota
	fragmentText
)

// cache is a set-associative table of verdicts. A hit reads two pointers and
// writes nothing, so it scales with the cores; the seed is random, so nobody
// can choose texts that share a set.
type cache struct {
	seed  maphash.Seed
	table atomic.Pointer[cacheTable]
}

type cacheTable struct {
	bytes   atomic.Int64
	entries [cacheSets][cacheWays]atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	text    string
	kind    textKind
	verdict Verdict
}

func newCache() *cache {
	c := &cache{seed: maphash.MakeSeed()}
	c.table.Store(new(cacheTable))
	return c
}

func (c *cache) get(text string, kind textKind) (Verdict, bool) {
	set := &c.table.Load().entries[maphash.String(c.seed, text)%cacheSets]
	for i := range set {
		if e := set[i].Load(); e != nil && e.kind == kind && e.text == text {
			return e.verdict, true
		}
	}
	return Verdict{}, false
}

// put keeps a copy of the text, because the caller's may be a small part of a
// large buffer.
func (c *cache) put(text string, kind textKind, v Verdict) {
	t := c.table.Load()
	e := &cacheEntry{text: strings.Clone(text), kind: kind, verdict: v}
	e.verdict.Word = strings.Clone(v.Word)
	if t.bytes.Add(e.size()) > CacheBytes {
		c.table.CompareAndSwap(t, new(cacheTable))
		return
	}
	if old := t.slot(maphash.String(c.seed, text)).Swap(e); old != nil {
		t.bytes.Add(-old.size())
	}
}

// slot returns a free place of the text's set, or the one to give up.
func (t *cacheTable) slot(hash uint64) *atomic.Pointer[cacheEntry] {
	set := &t.entries[hash%cacheSets]
	for i := range set {
		if set[i].Load() == nil {
			return &set[i]
		}
	}
	return &set[hash/cacheSets%cacheWays]
}

func (e *cacheEntry) size() int64 {
	return int64(len(e.text)+len(e.verdict.Word)) + entryOverhead
}
