package history

import "fmt"

// missing is what a read should have returned and did not: the operations with
// the highest versions, by what became of them.
type missing struct {
	broken int32 // no excuse, or none
	blind  int32 // in the blind spot, or none
	lost   int32 // lost by a promotion, or none
}

// judge holds a read to what its causal past wrote and read.
func (c *checker) judge(t *thread, i int32) {
	r := c.registers[c.registerO[i]]
	if c.ops[i].Version >= r.high {
		return
	}
	found := [2]missing{{none, none, none}, {none, none, none}}
	for k := range r.tracks {
		c.compare(&found, t.knownOf(&r.tracks[k]), i)
	}
	own, seen := found[bySelf], found[bySight]
	c.settle(t, i, own, RuleReadYourWrites, &c.result.ReadYourWrites)
	if own.broken == none && own.lost != none {
		seen.lost = none // this read is among the lost writes already
	}
	c.settle(t, i, seen, RuleMonotonic, &c.result.Monotonic)
}

// compare holds a read to what one session knew.
func (c *checker) compare(found *[2]missing, known []sighting, i int32) {
	if len(known) == 0 {
		return
	}
	for side, high := range known[len(known)-1].high {
		if high > c.ops[i].Version {
			c.collect(&found[side], known, i, side)
		}
	}
}

// settle lists a read once: as a violation if anything is without excuse, else
// under each excuse it needs.
func (c *checker) settle(t *thread, i int32, m missing, rule Rule, broken *[]Violation) {
	if m.broken != none {
		*broken = append(*broken, c.violation(t, i, m.broken, rule))
		return
	}
	if m.blind != none {
		c.result.BlindSpots = append(c.result.BlindSpots, c.violation(t, i, m.blind, ExcuseBlindSpot))
	}
	if m.lost != none {
		c.result.LostWrites = append(c.result.LostWrites, c.violation(t, i, m.lost, ExcuseLostWrite))
	}
}

// collect examines all that one session saw above the read's version, the
// highest first, until something has no excuse.
func (c *checker) collect(m *missing, seen []sighting, i int32, side int) {
	if c.add(m, seen[len(seen)-1].top[side], i) {
		return
	}
	for k := len(seen) - 1; k >= 0 && seen[k].high[side] > c.ops[i].Version; k-- {
		op := seen[k].op
		if sideOf(c.ops[op].Kind) == side && c.ops[op].Version > c.ops[i].Version && c.add(m, op, i) {
			return
		}
	}
}

// add files one missing operation and reports whether it has no excuse.
func (c *checker) add(m *missing, want, i int32) bool {
	slot := &m.broken
	switch c.excuse(want, i) {
	case ExcuseBlindSpot:
		slot = &m.blind
	case ExcuseLostWrite:
		slot = &m.lost
	}
	if *slot == none || c.ops[want].Version > c.ops[*slot].Version {
		*slot = want
	}
	return slot == &m.broken
}

// excuse returns why read i may lack what operation want wrote or read, 0 if it
// may not.
func (c *checker) excuse(want, i int32) Rule {
	seen, read := &c.ops[want], &c.ops[i]
	written := c.acknowledged(c.registers[c.registerO[i]], seen.Version)
	if read.LostReported && written != nil && c.lost(written, read) != nil {
		return ExcuseLostWrite
	}
	if c.strict || read.Strict || seen.Kind != Read || seen.Role != Replica || read.Role != Primary {
		return 0
	}
	if c.initialOrOlder(want) || (written != nil && !acknowledgedAfter(written, read)) {
		return 0
	}
	return ExcuseBlindSpot
}

// acknowledgedAfter reports whether the writer learnt of its commit only after
// the read had begun. Times of different clocks prove nothing.
func acknowledgedAfter(written, read *Op) bool {
	return written.Clock == read.Clock && written.End > read.Start
}

func (c *checker) initialOrOlder(i int32) bool {
	return c.ops[i].Version <= c.registers[c.registerO[i]].initial
}

// lost returns the promotion that lost the write before the read ended, nil if
// there is none.
func (c *checker) lost(written, read *Op) *Promotion {
	for k := range c.promotions {
		p := &c.promotions[k]
		if p.loses(written) && p.Clock == read.Clock && p.At < read.End {
			return p
		}
	}
	return nil
}

// violation tells the story of a read that lacks what operation want had.
func (c *checker) violation(t *thread, i, want int32, rule Rule) Violation {
	read, seen := &c.ops[i], &c.ops[want]
	v := Violation{Rule: rule, Op: read, Want: seen}
	written := c.acknowledged(c.registers[c.registerO[i]], seen.Version)
	if written != nil {
		v.Timeline = append(v.Timeline, written)
	}
	if rule == ExcuseLostWrite {
		v.Why = fmt.Sprintf("written at %s on timeline %d, lost by the %s", written.Position, written.Timeline, c.lost(written, read))
	}
	v.Timeline = append(v.Timeline, seen)
	v.Timeline = append(v.Timeline, c.path(t, int32(t.next), want)...)
	v.Timeline = append(v.Timeline, read)
	return v
}
