package history

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// none stands for "no operation" among operation numbers.
const none int32 = -1

// thread is a session being replayed.
type thread struct {
	id   int32
	ops  []int32 // by Seq
	next int     // how many of ops were replayed

	// epochs are the states of the causal past, one per receive that changed
	// it. Each vector is written once and shared from then on.
	epochs []epoch

	// busyUntil is when all operations so far had ended, on clock.
	busyUntil int64
	clock     string
}

// epoch is a causal past: of session i, the first seen[i] operations.
type epoch struct {
	at   int32 // how many own operations preceded it, the receive included
	seen []int32
}

// past returns the causal past as of the session's first n operations.
func (t *thread) past(n int32) []int32 {
	i := sort.Search(len(t.epochs), func(i int) bool { return t.epochs[i].at > n })
	if i == 0 {
		return nil
	}
	return t.epochs[i-1].seen
}

// horizon returns how many operations of a session are in the causal past of
// the operation being replayed.
func (t *thread) horizon(session int32) int32 {
	if session == t.id {
		return int32(t.next)
	}
	if n := len(t.epochs); n > 0 && int(session) < len(t.epochs[n-1].seen) {
		return t.epochs[n-1].seen[session]
	}
	return 0
}

// register is a key.
type register struct {
	writes    []int32 // of known version, by version, then start
	anonymous []int32 // writes of unknown outcome that never learnt their version
	orphans   []int32 // reads that only an anonymous write can explain
	tracks    []track // one per session that read or wrote it
	high      int64   // highest version of all sightings so far
	initial   int64
}

// track is what one session saw of one key, in its order.
type track struct {
	session int32
	seen    []sighting
}

// sighting is an acknowledged write or a read, with the highest versions of
// each side up to here and the operations that hold them.
type sighting struct {
	at   int32 // the session's operations up to this one
	op   int32
	top  [2]int32 // by side, or none
	high [2]int64 // versions of top, below 0 for none
}

// Sides of a sighting.
const (
	bySelf  = 0 // acknowledged writes: read your writes
	bySight = 1 // reads: monotonic reads
)

func sideOf(k Kind) int {
	if k == Write {
		return bySelf
	}
	return bySight
}

// upTo returns how many sightings happened within the first n operations.
func (t *track) upTo(n int32) int {
	if last := len(t.seen) - 1; last < 0 || t.seen[last].at <= n {
		return last + 1
	}
	return sort.Search(len(t.seen), func(i int) bool { return t.seen[i].at > n })
}

// checker replays a history session by session, each as far as its receives
// allow.
type checker struct {
	ops        []Op
	promotions []Promotion
	strict     bool
	result     Result

	threads   []*thread
	threadIDs map[string]int32
	registers []*register
	registerI map[string]int32
	threadOf  []int32 // by operation
	registerO []int32 // by operation
	position  []int32 // by operation: its number within its session, from 1
}

func newChecker(h History, o Options) *checker {
	c := &checker{
		ops: h.Ops, promotions: h.Promotions, strict: o.Strict,
		threadIDs: make(map[string]int32), registerI: make(map[string]int32),
		threadOf: make([]int32, len(h.Ops)), registerO: make([]int32, len(h.Ops)), position: make([]int32, len(h.Ops)),
	}
	c.result.Ops = len(h.Ops)
	for i := range h.Ops {
		c.index(int32(i), h.Initial)
	}
	c.result.Sessions = len(c.threads)
	for _, t := range c.threads {
		c.order(t)
	}
	for _, r := range c.registers {
		c.sortWrites(r)
	}
	return c
}

func (c *checker) index(i int32, initial map[string]int64) {
	op := &c.ops[i]
	if why := op.defect(); why != "" {
		c.doubt(op, "malformed: "+why)
		return
	}
	t := c.thread(op.Session)
	t.ops = append(t.ops, i)
	c.threadOf[i] = t.id
	if op.Kind == Receive {
		c.result.Receives++
		return
	}
	r := c.register(i, initial)
	if op.Kind == Write {
		c.indexWrite(i, r)
	}
}

func (c *checker) thread(name string) *thread {
	id, ok := c.threadIDs[name]
	if !ok {
		id = int32(len(c.threads))
		c.threadIDs[name] = id
		c.threads = append(c.threads, &thread{id: id, busyUntil: math.MinInt64})
	}
	return c.threads[id]
}

func (c *checker) register(i int32, initial map[string]int64) *register {
	key := c.ops[i].Key
	id, ok := c.registerI[key]
	if !ok {
		id = int32(len(c.registers))
		c.registerI[key] = id
		c.registers = append(c.registers, &register{initial: initial[key]})
	}
	c.registerO[i] = id
	return c.registers[id]
}

func (c *checker) indexWrite(i int32, r *register) {
	c.result.Writes++
	switch op := &c.ops[i]; op.Outcome {
	case Failed:
		c.result.FailedWrites++
	case Unknown:
		c.result.UnknownWrites++
		if op.Version <= 0 {
			r.anonymous = append(r.anonymous, i)
			return
		}
	}
	r.writes = append(r.writes, i)
}

// order sorts a session's operations and reports what is missing or double.
func (c *checker) order(t *thread) {
	slices.SortStableFunc(t.ops, func(a, b int32) int { return cmp.Compare(c.ops[a].Seq, c.ops[b].Seq) })
	kept, last := t.ops[:0], 0
	for _, i := range t.ops {
		op := &c.ops[i]
		if op.Seq == last {
			c.doubt(op, "recorded twice: a session of that name exists more than once")
			continue
		}
		if op.Seq != last+1 {
			c.doubt(op, "operations before it are missing from the history")
		}
		last = op.Seq
		kept = append(kept, i)
		c.position[i] = int32(len(kept))
	}
	t.ops = kept
}

// sortWrites orders a key's writes and reports what breaks the model.
func (c *checker) sortWrites(r *register) {
	slices.SortFunc(r.writes, func(a, b int32) int {
		x, y := &c.ops[a], &c.ops[b]
		return cmp.Or(cmp.Compare(x.Version, y.Version), cmp.Compare(x.Start, y.Start), cmp.Compare(a, b))
	})
	var last *Op
	for _, i := range r.writes {
		op := &c.ops[i]
		if op.Outcome != OK {
			continue
		}
		if last != nil && last.Version == op.Version {
			c.doubt(op, "two acknowledged writes of one version: "+op.Key+" has no order", last)
		}
		if op.Version <= r.initial {
			c.doubt(op, "an acknowledged write not above the initial version")
		}
		last = op
	}
}

// writesOf returns a key's writes of one version, by start.
func (c *checker) writesOf(r *register, version int64) []int32 {
	from := sort.Search(len(r.writes), func(i int) bool { return c.ops[r.writes[i]].Version >= version })
	to := from
	for to < len(r.writes) && c.ops[r.writes[to]].Version == version {
		to++
	}
	return r.writes[from:to]
}

// acknowledged returns the acknowledged write of a version, nil if there is none.
func (c *checker) acknowledged(r *register, version int64) *Op {
	for _, i := range c.writesOf(r, version) {
		if c.ops[i].Outcome == OK {
			return &c.ops[i]
		}
	}
	return nil
}
