package history

import "math"

// Check judges a history. It takes time in proportion to the number of
// operations times the number of sessions that share a key, and memory in
// proportion to the number of receives times the number of sessions: a million
// operations of 64 sessions are a matter of seconds.
func Check(h History, o Options) Result {
	c := newChecker(h, o)
	c.replay()
	for _, r := range c.registers {
		c.settleOrphans(r)
	}
	if c.result.Reads == 0 {
		c.doubt(nil, "no read returned a version: nothing was proved")
	}
	return c.result
}

// turn is how many operations a session replays before the next one does. A
// small number keeps sessions abreast of one another, so that few reads are
// below what other sessions have seen, and most are judged at a glance.
const turn = 16

// replay runs all sessions to their ends. A receive waits until the sender's
// state exists; when every session waits, the receives form a circle.
func (c *checker) replay() {
	for {
		progress, stuck := false, (*thread)(nil)
		for _, t := range c.threads {
			from := t.next
			c.advance(t)
			progress = progress || t.next > from
			if t.next < len(t.ops) {
				stuck = t
			}
		}
		if stuck == nil {
			return
		}
		if !progress {
			c.doubt(&c.ops[stuck.ops[stuck.next]], "received from its own future: the receives form a circle")
			stuck.next++
		}
	}
}

// advance replays a session for a turn, or up to a receive that has to wait.
func (c *checker) advance(t *thread) {
	for end := min(t.next+turn, len(t.ops)); t.next < end; t.next++ {
		i := t.ops[t.next]
		switch op := &c.ops[i]; op.Kind {
		case Receive:
			if !c.arrived(op) {
				return
			}
			c.serial(t, op)
			c.receive(t, op)
		case Write:
			c.write(t, i, c.serial(t, op))
		default:
			c.read(t, i, c.serial(t, op))
		}
	}
}

// serial reports whether an operation began after the session's earlier ones
// had ended. If not, they do not bind it, and it cannot be judged.
func (c *checker) serial(t *thread, op *Op) bool {
	if op.Clock != t.clock {
		t.clock, t.busyUntil = op.Clock, math.MinInt64
	}
	overlaps := op.Start < t.busyUntil
	if overlaps {
		c.doubt(op, "overlaps an earlier operation of its session, or that one never ended")
	}
	if op.open() {
		t.busyUntil = math.MaxInt64
	}
	t.busyUntil = max(t.busyUntil, op.End)
	return !overlaps
}

func (c *checker) write(t *thread, i int32, serial bool) {
	op := &c.ops[i]
	if op.Outcome != OK {
		return
	}
	if serial {
		c.checkGrowth(t, i)
	}
	c.note(t, i)
}

// checkGrowth holds the model to its word: an acknowledged write is above all
// that its session knew.
func (c *checker) checkGrowth(t *thread, i int32) {
	op, r := &c.ops[i], c.registers[c.registerO[i]]
	if op.Version >= r.high {
		return
	}
	for k := range r.tracks {
		known := t.knownOf(&r.tracks[k])
		if len(known) == 0 {
			continue
		}
		last := &known[len(known)-1]
		for side, high := range last.high {
			if high > op.Version {
				c.doubt(op, "acknowledged below a version its session knew: "+op.Key+" has no order", &c.ops[last.top[side]])
				return
			}
		}
	}
}

func (c *checker) read(t *thread, i int32, serial bool) {
	op := &c.ops[i]
	if op.Outcome != OK {
		c.result.NoAnswer++
		return
	}
	c.result.Reads++
	if op.Role == Replica {
		c.result.ReplicaReads++
	}
	c.origin(t, i)
	if serial {
		c.judge(t, i)
	}
	c.note(t, i)
}

// note makes an acknowledged write or a read bind what follows.
func (c *checker) note(t *thread, i int32) {
	op, r := &c.ops[i], c.registers[c.registerO[i]]
	tr := r.trackOf(t.id)
	s := sighting{at: c.position[i], op: i, top: [2]int32{none, none}, high: [2]int64{-1, -1}}
	if n := len(tr.seen); n > 0 {
		s.top, s.high = tr.seen[n-1].top, tr.seen[n-1].high
	}
	if side := sideOf(op.Kind); op.Version > s.high[side] {
		s.top[side], s.high[side] = i, op.Version
	}
	tr.seen = append(tr.seen, s)
	r.high = max(r.high, op.Version)
}

func (r *register) trackOf(session int32) *track {
	for k := range r.tracks {
		if r.tracks[k].session == session {
			return &r.tracks[k]
		}
	}
	r.tracks = append(r.tracks, track{session: session})
	return &r.tracks[len(r.tracks)-1]
}

// doubt lists something that cannot be judged.
func (c *checker) doubt(op *Op, why string, beside ...*Op) {
	v := Violation{Rule: NotJudged, Op: op, Why: why, Timeline: beside}
	if op != nil {
		v.Timeline = append(beside, op)
	}
	c.result.Unknown = append(c.result.Unknown, v)
}
