package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// oracle judges a history the slow way: with the causal past of every
// operation as a set, and every pair of a read and something newer on its own.
// It needs operations sorted so that each follows its causal past.
type oracle struct {
	h     History
	past  []map[int]bool
	lists map[string][]string
}

func judgeSlowly(h History) *oracle {
	o := &oracle{h: h, lists: make(map[string][]string)}
	latest := make(map[string]int)
	byMark := make(map[Mark]int)
	for i := range h.Ops {
		op := &h.Ops[i]
		past := make(map[int]bool)
		if before, ok := latest[op.Session]; ok {
			maps.Copy(past, o.past[before])
			past[before] = true
		}
		if from, ok := byMark[op.From]; ok && op.Kind == Receive {
			maps.Copy(past, o.past[from])
			past[from] = true
		}
		o.past = append(o.past, past)
		latest[op.Session], byMark[op.Mark()] = i, i
		if op.Kind == Read && op.Outcome == OK {
			o.read(i)
		}
	}
	return o
}

func (o *oracle) read(i int) {
	excuses := map[Kind]map[string]bool{Write: {}, Read: {}}
	for _, x := range o.newer(i) {
		excuses[o.h.Ops[x].Kind][o.excuse(x, i)] = true
	}
	at := o.h.Ops[i].Mark().String()
	for kind, list := range map[Kind]string{Write: "ryw", Read: "mono"} {
		if excuses[kind][""] {
			o.lists[list] = append(o.lists[list], at)
			continue
		}
		for name := range excuses[kind] {
			if !slices.Contains(o.lists[name], at) {
				o.lists[name] = append(o.lists[name], at)
			}
		}
	}
}

// newer returns what read i should have returned and did not.
func (o *oracle) newer(i int) []int {
	var found []int
	for x := range o.past[i] {
		seen := &o.h.Ops[x]
		if seen.Outcome == OK && seen.Key == o.h.Ops[i].Key && seen.Version > o.h.Ops[i].Version {
			found = append(found, x)
		}
	}
	return found
}

func (o *oracle) excuse(x, i int) string {
	seen, read := &o.h.Ops[x], &o.h.Ops[i]
	var written *Op
	for k := range o.h.Ops {
		if w := &o.h.Ops[k]; w.Kind == Write && w.Outcome == OK && w.Key == seen.Key && w.Version == seen.Version {
			written = w
		}
	}
	for _, p := range o.h.Promotions {
		if read.LostReported && written != nil && written.Timeline < p.NewTimeline &&
			written.Position > p.SwitchPoint && read.End > p.At {
			return "lost"
		}
	}
	unacknowledged := written == nil || written.End > read.Start
	if seen.Kind == Read && seen.Role == Replica && read.Role == Primary && !read.Strict && unacknowledged {
		return "blind"
	}
	return ""
}

func (o *oracle) verdict() string {
	var parts []string
	for _, name := range []string{"ryw", "mono", "blind", "lost"} {
		if list := o.lists[name]; len(list) > 0 {
			slices.Sort(list)
			parts = append(parts, name+" "+strings.Join(list, " "))
		}
	}
	return strings.Join(parts, "; ")
}

// sortedVerdict is verdict without what the oracle does not judge, in its order.
func sortedVerdict(r Result) string {
	o := &oracle{lists: make(map[string][]string)}
	for name, list := range map[string][]Violation{
		"ryw": r.ReadYourWrites, "mono": r.Monotonic, "blind": r.BlindSpots, "lost": r.LostWrites,
	} {
		for i := range list {
			o.lists[name] = append(o.lists[name], place(list[i].Op))
		}
	}
	return o.verdict()
}

// garbage returns a well-formed history with random answers.
func garbage(seed uint64) History {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := History{Promotions: []Promotion{{At: 200 + rng.Int64N(200), NewTimeline: 2, SwitchPoint: LSN(rng.IntN(40))}}}
	ends, seqs := make([]int64, 4), make([]int, 4)
	versions := make(map[string]int64)
	for n := int64(1); n <= 60; n++ {
		s := rng.IntN(len(ends))
		op := randomOp(rng, n, seqs, versions)
		seqs[s]++
		op.Session, op.Seq = fmt.Sprint("s", s), seqs[s]
		op.Start = max(ends[s], n*10) + rng.Int64N(5)
		op.End = op.Start + 1 + rng.Int64N(60)
		ends[s] = op.End
		h.Ops = append(h.Ops, op)
	}
	return h
}

func randomOp(rng *rand.Rand, n int64, seqs []int, versions map[string]int64) Op {
	op := Op{Kind: Read, Key: fmt.Sprint("k", rng.IntN(2))}
	switch rng.IntN(4) {
	case 0:
		versions[op.Key]++
		op.Kind, op.Answer = Write, Answer{
			Outcome: []Outcome{OK, OK, Unknown, Failed}[rng.IntN(4)], Version: versions[op.Key],
			Timeline: 1 + rng.Uint32N(2), Position: LSN(n),
		}
	case 1:
		from := rng.IntN(len(seqs))
		return Op{Kind: Receive, From: Mark{fmt.Sprint("s", from), rng.IntN(seqs[from] + 1)}}
	default:
		op.Answer = Answer{
			Outcome: OK, Version: max(0, versions[op.Key]-rng.Int64N(3)), Role: Role(rng.IntN(3)),
			Strict: rng.IntN(5) == 0, LostReported: rng.IntN(2) == 0,
		}
	}
	return op
}

func TestCheckAgreesWithTheSlowOracle(t *testing.T) {
	kinds := make(map[string]int)
	for seed := range uint64(1000) {
		h := garbage(seed)
		want := judgeSlowly(h)
		r := Check(h, Options{})
		if have := sortedVerdict(r); have != want.verdict() {
			t.Fatalf("seed %d: have %q, want %q", seed, have, want.verdict())
		}
		checkWitnesses(t, want, r)
		for name, list := range want.lists {
			kinds[name] += len(list)
		}
	}
	for _, name := range []string{"ryw", "mono", "blind", "lost"} {
		if kinds[name] < 100 {
			t.Errorf("%s: only %d in all histories: the test compares next to nothing", name, kinds[name])
		}
	}
}

// checkWitnesses holds every entry to what it claims.
func checkWitnesses(t *testing.T, o *oracle, r Result) {
	t.Helper()
	names := map[Rule]string{ExcuseBlindSpot: "blind", ExcuseLostWrite: "lost"}
	for _, list := range [][]Violation{r.ReadYourWrites, r.Monotonic, r.BlindSpots, r.LostWrites} {
		for i := range list {
			v := &list[i]
			read, want := o.number(v.Op), o.number(v.Want)
			if !slices.Contains(o.newer(read), want) || o.excuse(want, read) != names[v.Rule] {
				t.Fatalf("%s names %s, which is no such thing", v, v.Want.Mark())
			}
			if v.Timeline[len(v.Timeline)-1] != v.Op {
				t.Fatalf("%s does not end with the read", v)
			}
		}
	}
}

func (o *oracle) number(op *Op) int {
	for i := range o.h.Ops {
		if &o.h.Ops[i] == op {
			return i
		}
	}
	return -1
}
