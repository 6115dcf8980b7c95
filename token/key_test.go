package token

import (
	"hash/fnv"
	"testing"
)

func TestKeyConstrains(t *testing.T) {
	for _, c := range []struct {
		k, cluster Key
		want       bool
	}{
		{Key{}, Key{}, true},
		{Key{}, Key{1, 2}, true},
		{Key{1, 0}, Key{1, 2}, true},
		{Key{0, 2}, Key{1, 2}, true},
		{Key{1, 2}, Key{1, 2}, true},
		{Key{1, 2}, Key{}, true},
		{Key{1, 2}, Key{1, 0}, true},
		{Key{0, 2}, Key{1, 0}, true},
		{Key{1, 2}, Key{1, 3}, false},
		{Key{1, 2}, Key{3, 2}, false},
		{Key{1, 0}, Key{3, 2}, false},
		{Key{0, 2}, Key{1, 3}, false},
		{Key{1, 2}, Key{0, 3}, false},
	} {
		if got := c.k.Constrains(c.cluster); got != c.want {
			t.Errorf("%v constrains %v: have %v, want %v", c.k, c.cluster, got, c.want)
		}
	}
}

// The limits rely on this: the smallest keys are kept, so with a key all that are
// broader.
func TestBroaderKeysComeFirst(t *testing.T) {
	keys := generator{}.keys()
	for _, a := range keys {
		for _, b := range keys {
			broader := a != b && (a.System == 0 || a.System == b.System) && (a.Name == 0 || a.Name == b.Name)
			if a.broaderThan(b) != broader {
				t.Fatalf("%v broader than %v: %v", a, b, !broader)
			}
			if broader && (a.Compare(b) >= 0 || b.Compare(a) <= 0) {
				t.Fatalf("%v is broader than %v but does not come before it", a, b)
			}
			if a.Constrains(b) && a.Compare(b.last()) > 0 {
				t.Fatalf("%v constrains %v but comes after its last key %v", a, b, b.last())
			}
		}
	}
}

func TestNameHash(t *testing.T) {
	if NameHash("") != 0 {
		t.Error("the empty name has a hash")
	}
	for _, name := range []string{"a", "orders", "orders-eu", "\x00"} {
		h := fnv.New64a()
		h.Write([]byte(name))
		if NameHash(name) != h.Sum64() {
			t.Errorf("hash of %q: have %x, want %x", name, NameHash(name), h.Sum64())
		}
	}
}

func TestKeyText(t *testing.T) {
	for k, want := range map[Key]string{{}: "*.*", {0xAB, 0}: "ab.*", {0, 1}: "*.1", {2, 3}: "2.3"} {
		if k.String() != want {
			t.Errorf("have %q, want %q", k, want)
		}
	}
}
