package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// large returns a history of n operations: 64 sessions, 20,000 keys, a fifth of
// it receives. Reads are stale by that many versions.
func large(n int, stale int64) History {
	rng := rand.New(rand.NewPCG(1, 4))
	const sessions, keys = 64, 20_000
	h := History{Ops: make([]Op, 0, n)}
	seqs, versions := make([]int, sessions), make([]int64, keys)
	names := make([]string, keys)
	for k := range names {
		names[k] = fmt.Sprint("key", k)
	}
	for i := range int64(n) {
		s := rng.IntN(sessions)
		seqs[s]++
		op := Op{Session: names[s], Seq: seqs[s], Start: i * 10, End: i*10 + 9}
		k := rng.IntN(keys)
		switch rng.IntN(5) {
		case 0:
			from := rng.IntN(sessions)
			op.Kind, op.From = Receive, Mark{names[from], seqs[from]}
			if from == s {
				op.From.Seq--
			}
		case 1:
			versions[k]++
			op.Kind, op.Key, op.Answer = Write, names[k], Answer{Outcome: OK, Version: versions[k]}
		default:
			op.Kind, op.Key, op.Answer = Read, names[k], Answer{Outcome: OK, Version: max(0, versions[k]-stale), Role: Replica}
		}
		h.Ops = append(h.Ops, op)
	}
	return h
}

// BenchmarkCheck judges a million operations each time. In the broken history
// most reads are below what their session knows, and every one is reported.
func BenchmarkCheck(b *testing.B) {
	for name, stale := range map[string]int64{"legal": 0, "broken": 3} {
		b.Run(name, func(b *testing.B) {
			h := large(1_000_000, stale)
			b.ReportAllocs()
			for b.Loop() {
				r := Check(h, Options{})
				if r.Ok() != (stale == 0) || len(r.Unknown) > 0 {
					b.Fatal(r.String())
				}
				b.ReportMetric(float64(r.Violations()), "violations")
			}
		})
	}
}

// BenchmarkRecord is what recording adds to one operation of the program under
// test.
func BenchmarkRecord(b *testing.B) {
	rec := NewRecorder("p")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		s := rec.Session(fmt.Sprint(rand.Uint64()))
		for pb.Next() {
			s.Read("k").End(Answer{Outcome: OK})
		}
	})
}
