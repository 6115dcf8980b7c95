package token

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

// seeds adds texts of random tokens.
func seeds(n int, add func(g generator)) {
	g := generator{rand.New(rand.NewPCG(3, 5))}
	for range n {
		add(g)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "0/0", "A2C/FE118820", "a2c/0000000f", "r1.", "r1.AA", "r1.IEA", "r2.AS1g", "r1.AS1g.k.c2ln",
		widest(6).String(), widest(16).String(), widest(17).String(), resolved(full).String(),
	} {
		f.Add(text)
	}
	seeds(50, func(g generator) { f.Add(g.token().String()) })
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := Parse(text)
		if err != nil {
			wantInvalid(t, err, "")
			return
		}
		if strings.Contains(text, "/") {
			bare, err := ParseLSN(text)
			if err != nil || !tok.Equal(FromLSN(bare)) {
				t.Fatalf("LSN %q: %v, %s", text, err, describe(tok))
			}
			return
		}
		if tok.String() != text {
			t.Fatalf("have %s", describe(tok))
		}
		checkNormal(t, tok)
	})
}

// FuzzPayload is FuzzParse without base64, which hides the structure from the
// fuzzer.
func FuzzPayload(f *testing.F) {
	seeds(50, func(g generator) { f.Add(g.token().appendPayload(nil)) })
	f.Fuzz(func(t *testing.T, payload []byte) {
		tok, err := Parse("r1." + base64.RawURLEncoding.EncodeToString(payload))
		if err != nil {
			wantInvalid(t, err, "")
			return
		}
		if string(tok.appendPayload(nil)) != string(payload) {
			t.Fatalf("have %s", describe(tok))
		}
		checkNormal(t, tok)
	})
}

// checkNormal checks that the constructors would have made the same token.
func checkNormal(t *testing.T, tok Token) {
	t.Helper()
	if tok.IsZero() || tok.Len() > MaxEntries {
		t.Fatalf("%d entries", tok.Len())
	}
	for i := range tok.entries {
		if e := tok.At(i); !same(normal(e), e) {
			t.Fatalf("not normal: %s", describeEntry(e))
		}
	}
	wantEqual(t, finish(tok.Entries(), tok.others), tok)
	if !tok.others {
		wantEqual(t, FromEntries(tok.Entries()...), tok)
	}
}

func FuzzMerge(f *testing.F) {
	seeds(100, func(g generator) {
		f.Add(g.token().appendPayload(nil), g.token().appendPayload(nil), g.token().appendPayload(nil))
	})
	keys := generator{}.keys()
	f.Fuzz(func(t *testing.T, x, y, z []byte) {
		a, errA := decode(x)
		b, errB := decode(y)
		c, errC := decode(z)
		if errA != nil && errB != nil && errC != nil {
			return
		}
		checkLaws(t, a, b, c)
		m := a.Merge(b)
		if m.IsZero() {
			return
		}
		checkNormal(t, m)
		roundTrip(t, m)
		for _, e := range a.Entries() {
			keys = append(keys[:64], e.Key)
			for _, k := range keys {
				if lost := lostFor(k, a, m); lost != "" {
					t.Fatalf("%v lost %s\na: %s\nb: %s\nmerged: %s", k, lost, describe(a), describe(b), describe(m))
				}
			}
		}
	})
}
