package token

import (
	"testing"
	"time"
)

// benchTokens are of one cluster, as most are, and as large as they get.
var benchTokens = map[string]Token{
	"one": FromEntries(Entry{
		Key: Key{System: 7421938451230987654}, Write: at(3, 0xA2C_FE118820), Floor: at(3, 0xA2C_FE118860),
		Minted: time.UnixMilli(1_772_323_200_000),
	}),
	"sixteen": widest(16),
}

func benchmark(b *testing.B, f func(t Token)) {
	for _, name := range []string{"one", "sixteen"} {
		b.Run(name, func(b *testing.B) {
			tok := benchTokens[name]
			b.ReportAllocs()
			for b.Loop() {
				f(tok)
			}
		})
	}
}

func BenchmarkString(b *testing.B) {
	benchmark(b, func(t Token) { _ = t.String() })
}

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"one", "sixteen"} {
		b.Run(name, func(b *testing.B) {
			text := benchTokens[name].String()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMergeSame(b *testing.B) {
	benchmark(b, func(t Token) { t.Merge(t) })
}

func BenchmarkMergeEmpty(b *testing.B) {
	benchmark(b, func(t Token) { t.Merge(Token{}) })
}

// BenchmarkWithHigher is what a session does after each write.
func BenchmarkWithHigher(b *testing.B) {
	benchmark(b, func(t Token) {
		e := t.At(0)
		t.With(Entry{Key: e.Key, Write: at(e.Write.Timeline, e.Write.LSN-1).Max(at(e.Write.Timeline+1, 1))})
	})
}

func BenchmarkAt(b *testing.B) {
	var sum LSN
	benchmark(b, func(t Token) {
		for i := range t.Len() {
			sum += t.At(i).Write.LSN
		}
	})
	_ = sum
}
