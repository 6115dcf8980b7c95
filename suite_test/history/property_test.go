package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// scenarios are simulated systems that keep the guarantees.
var scenarios = []struct {
	name             string
	strict, failover bool
}{
	{"on", false, false},
	{"strict", true, false},
	{"failover", false, true},
}

func TestCorrectSystemsPass(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			var blind, lost, replica int
			for seed := range uint64(40) {
				r := Check(simulate(seed, 1000, sc.strict, sc.failover), Options{Strict: sc.strict})
				if !r.Ok() {
					t.Fatalf("seed %d: %s", seed, r.String())
				}
				blind += len(r.BlindSpots)
				lost += len(r.LostWrites)
				replica += r.ReplicaReads
			}
			t.Logf("%d blind spots, %d lost writes, %d reads on replicas", blind, lost, replica)
			if (blind > 0) != (sc.name == "on") || (lost > 0) != sc.failover {
				t.Errorf("have %d blind spots and %d lost writes", blind, lost)
			}
			if replica < 4000 {
				t.Errorf("have %d reads on replicas: the simulation hardly uses them", replica)
			}
		})
	}
}

// One read is made stale, by the least possible; it, and nothing else, must be
// named.
func TestOneStaleReadIsNamed(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			named := 0
			for seed := range uint64(25) {
				h := simulate(seed, 400, sc.strict, sc.failover)
				i := makeStale(h, rand.New(rand.NewPCG(seed, 3)))
				if i < 0 {
					continue
				}
				r := Check(h, Options{Strict: sc.strict})
				want := h.Ops[i].Mark()
				for _, v := range slices.Concat(r.ReadYourWrites, r.Monotonic) {
					if v.Op.Mark() != want {
						t.Fatalf("seed %d: %s made stale, but named is %s", seed, want, v.String())
					}
				}
				if r.Violations() == 0 || len(r.Dirty)+len(r.Invented)+len(r.Unknown) > 0 {
					t.Fatalf("seed %d: %s made stale: %s", seed, want, r.String())
				}
				named++
			}
			if named < 20 {
				t.Errorf("have %d mutations, want most of 25", named)
			}
		})
	}
}

// makeStale gives one read the highest version below what its causal past
// holds, and returns its number, or -1.
func makeStale(h History, rng *rand.Rand) int {
	o := judgeSlowly(causalOrder(h))
	for _, i := range rng.Perm(len(h.Ops)) {
		read := &h.Ops[i]
		if read.Kind != Read || read.Outcome != OK {
			continue
		}
		needed := int64(0)
		for x := range o.past[i] {
			if seen := &h.Ops[x]; seen.Key == read.Key && seen.Outcome == OK {
				needed = max(needed, seen.Version)
			}
		}
		if needed == 0 {
			continue
		}
		read.Version = versionBelow(h, read, needed)
		read.Role, read.LostReported = Replica, false
		return i
	}
	return -1
}

func versionBelow(h History, read *Op, needed int64) int64 {
	var below int64
	for i := range h.Ops {
		w := &h.Ops[i]
		if w.Kind == Write && w.Key == read.Key && w.Outcome != Failed && w.Version < needed && w.Start < read.End {
			below = max(below, w.Version)
		}
	}
	return below
}

// causalOrder checks that a simulated history, which lists operations as they
// end, is what the oracle needs.
func causalOrder(h History) History {
	done := make(map[string]int)
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Seq != done[op.Session]+1 || op.Kind == Receive && op.From.Seq > done[op.From.Session] {
			panic("not in causal order: " + op.Mark().String())
		}
		done[op.Session] = op.Seq
	}
	return h
}
