package sqlread

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// held counts what the cache keeps.
func held(c *cache) (entries int, bytes int64) {
	table := c.table.Load()
	for i := range table.entries {
		for j := range table.entries[i] {
			if e := table.entries[i][j].Load(); e != nil {
				entries++
				bytes += e.size()
			}
		}
	}
	return entries, bytes
}

func TestCacheAnswersAsWithout(t *testing.T) {
	c := newClassifier(t, Rules{})
	for _, list := range refusedStatements {
		for _, sql := range list {
			first, second := c.Statement(sql), c.Statement(sql)
			if want := c.classify(sql, statementText); first != want || second != want {
				t.Errorf("%s\nhave %v and then %v, want %v", sql, first, second, want)
			}
		}
	}
	if v, ok := c.cache.get(`select nextval('s')`, statementText); !ok || v.Word != "nextval" {
		t.Errorf("have %v, %v in the cache, want function: nextval", v, ok)
	}
	if _, ok := c.cache.get(`select nextval('s')`, fragmentText); ok {
		t.Error("a statement's verdict is found as a fragment's")
	}
}

func TestCacheIsBounded(t *testing.T) {
	for name, length := range map[string]int{"many short texts": 40, "few long texts": CacheTextBytes} {
		t.Run(name, func(t *testing.T) {
			c := newClassifier(t, Rules{})
			most, room := 0, min(CacheEntries, CacheBytes/(length+entryOverhead))
			for i := range 3 * room {
				text := fmt.Sprintf("select %d -- ", i)
				text += strings.Repeat("x", length-len(text))
				c.Statement(text)
				if _, ok := c.cache.get(text, statementText); !ok && i == 0 {
					t.Fatal("the first text is not in the cache")
				}
				if i%(room/16) == 0 {
					entries, bytes := held(c.cache)
					if counted := c.cache.table.Load().bytes.Load(); bytes != counted {
						t.Fatalf("after %d texts: have %d bytes counted, want %d", i, counted, bytes)
					}
					if entries > CacheEntries || bytes > CacheBytes {
						t.Fatalf("after %d texts: have %d entries, %d bytes, want at most %d, %d", i, entries, bytes, CacheEntries, CacheBytes)
					}
					most = max(most, entries)
				}
			}
			if most < room/2 {
				t.Errorf("have at most %d entries, want %d: the cache is hardly used", most, room/2)
			}
		})
	}
}

func TestCacheKeepsNoLongText(t *testing.T) {
	c := newClassifier(t, Rules{})
	long := "select 1" + strings.Repeat(" ", CacheTextBytes)
	if v := c.Statement(long); !v.Pure {
		t.Errorf("have %v, want pure read", v)
	}
	if entries, _ := held(c.cache); entries != 0 {
		t.Errorf("have %d entries, want none", entries)
	}
}

// The text given may be a small part of a large buffer.
func TestCacheKeepsACopy(t *testing.T) {
	c := newClassifier(t, Rules{})
	buffer := strings.Repeat(" ", 1<<20) + "select nextval('s')"
	text := buffer[1<<20:]
	c.Statement(text)
	for set := range c.cache.table.Load().entries {
		for i := range cacheWays {
			e := c.cache.table.Load().entries[set][i].Load()
			if e == nil {
				continue
			}
			if e.text != text || e.verdict.Word != "nextval" {
				t.Errorf("have %q, %v in the cache", e.text, e.verdict)
			}
			if unsafe.StringData(e.text) == unsafe.StringData(text) || unsafe.StringData(e.verdict.Word) == unsafe.StringData(text[7:]) {
				t.Error("the cache keeps the caller's buffer alive")
			}
			return
		}
	}
	t.Error("the text is not in the cache")
}

func TestCacheConcurrently(t *testing.T) {
	c := newClassifier(t, Rules{})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 20_000 {
				pure := fmt.Sprintf("select %d", (i*(worker+1))%6000)
				if v := c.Statement(pure); !v.Pure {
					t.Errorf("%s: have %v, want pure read", pure, v)
				}
				if v := c.Fragment("nextval(" + pure[7:] + ")"); v.Reason != ReasonFunction {
					t.Errorf("have %v, want %v", v, ReasonFunction)
				}
			}
		})
	}
	group.Wait()
	if entries, bytes := held(c.cache); entries > CacheEntries || bytes != c.cache.table.Load().bytes.Load() {
		t.Errorf("have %d entries and %d bytes, counted %d", entries, bytes, c.cache.table.Load().bytes.Load())
	}
}

const typicalText = `SELECT u.id, u.name, lower(u.email) AS email, count(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.deleted_at IS NULL AND u.name ILIKE $1 GROUP BY u.id ORDER BY u.id LIMIT 20`

func TestNoAllocations(t *testing.T) {
	c := newClassifier(t, testRules)
	c.Statement(typicalText)
	c.Fragment("lower(name) = ?")
	for name, f := range map[string]func(){
		"statement in the cache": func() { c.Statement(typicalText) },
		"fragment in the cache":  func() { c.Fragment("lower(name) = ?") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: have %v allocations, want 0", name, n)
		}
	}
	plain := newClassifier(t, Rules{})
	if n := testing.AllocsPerRun(100, func() { plain.classify(typicalText, statementText) }); n != 0 {
		t.Errorf("statement not in the cache: have %v allocations, want 0", n)
	}
}

func BenchmarkStatementCached(b *testing.B) {
	c := newClassifier(b, Rules{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Statement(typicalText)
		}
	})
}

func BenchmarkFragmentCached(b *testing.B) {
	c := newClassifier(b, Rules{})
	b.ReportAllocs()
	for b.Loop() {
		c.Fragment("name = ? AND created_at > ?")
	}
}

func BenchmarkClassify(b *testing.B) {
	c := newClassifier(b, Rules{})
	b.ReportAllocs()
	b.SetBytes(int64(len(typicalText)))
	for b.Loop() {
		c.classify(typicalText, statementText)
	}
}
