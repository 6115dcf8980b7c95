package history

import (
	"cmp"
	"slices"
)

// origin asks where the version of a read came from.
func (c *checker) origin(t *thread, i int32) {
	read, r := &c.ops[i], c.registers[c.registerO[i]]
	if read.Version == r.initial {
		return
	}
	var rolledBack, otherClock *Op
	for _, w := range c.writesOf(r, read.Version) {
		switch write := &c.ops[w]; {
		case write.Clock == read.Clock && write.Start >= read.End:
		case write.Outcome == Failed:
			rolledBack = write
		case write.Clock == read.Clock || c.knows(t, w):
			return
		default:
			otherClock = write
		}
	}
	switch {
	case otherClock != nil:
		c.doubt(read, "cannot tell whether it was written before: two clocks", otherClock)
	case len(r.anonymous) > 0:
		r.orphans = append(r.orphans, i)
	default:
		c.unfounded(read, rolledBack)
	}
}

// unfounded lists a read of a version that was rolled back, or never was.
func (c *checker) unfounded(read, rolledBack *Op) {
	version := versionText(read.Version)
	if rolledBack != nil {
		c.result.Dirty = append(c.result.Dirty, Violation{
			Rule: RuleDirty, Op: read, Timeline: []*Op{rolledBack, read},
			Why: read.Key + ": have " + version + ", which certainly was not applied (" + rolledBack.Mark().String() + ")",
		})
		return
	}
	c.result.Invented = append(c.result.Invented, Violation{
		Rule: RuleInvented, Op: read, Timeline: []*Op{read},
		Why: read.Key + ": have " + version + ", which no write that began before can have stored",
	})
}

// settleOrphans matches versions that nobody is known to have written with
// writes of unknown outcome that never learnt their version: one version each,
// begun before its first reader ended. Taking both in the order of time finds
// a match for as many as can have one.
func (c *checker) settleOrphans(r *register) {
	if len(r.orphans) == 0 {
		return
	}
	if !c.oneClock(r.orphans, r.anonymous) {
		for _, i := range r.orphans {
			c.doubt(&c.ops[i], "cannot tell whether an unknown write explains it: two clocks")
		}
		return
	}
	slices.SortFunc(r.orphans, func(a, b int32) int { return cmp.Compare(c.ops[a].End, c.ops[b].End) })
	slices.SortFunc(r.anonymous, func(a, b int32) int { return cmp.Compare(c.ops[a].Start, c.ops[b].Start) })
	explained, free := make(map[int64]bool), r.anonymous
	for _, i := range r.orphans {
		read := &c.ops[i]
		known, ok := explained[read.Version]
		if !ok {
			known = len(free) > 0 && c.ops[free[0]].Start < read.End
			explained[read.Version] = known
			if known {
				free = free[1:]
			}
		}
		if !known {
			c.unfounded(read, c.rolledBack(r, read))
		}
	}
}

func (c *checker) rolledBack(r *register, read *Op) *Op {
	for _, w := range c.writesOf(r, read.Version) {
		if write := &c.ops[w]; write.Outcome == Failed && write.Start < read.End {
			return write
		}
	}
	return nil
}

func (c *checker) oneClock(lists ...[]int32) bool {
	first := c.ops[lists[0][0]].Clock
	for _, list := range lists {
		for _, i := range list {
			if c.ops[i].Clock != first {
				return false
			}
		}
	}
	return true
}
