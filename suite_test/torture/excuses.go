package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// While two servers take writes behind one DSN, the library promises less to an
// application that does not use rywpgx: a position may be asked of the other one, and
// a connection of the pool may lead to either. What exactly is left out of judgement
// is here. The old primary's own record of what it took proves each case.

// notPromised counts what was left out.
type notPromised struct {
	// misplaced writes went to the old primary and were captured on the new one.
	misplaced int
	// unsure reads were answered by one of two primaries.
	unsure int
	// would is how many violations there would have been with both.
	would int
	// untold are reads that lack what was read before, which the old primary took
	// and whose writer never learnt that; they report a possibly lost write.
	untold []history.Violation
}

// judge judges the history, without what is not promised.
func (r *outcome) judge(h history.History, orders map[string]Orders) {
	opt := history.Options{Strict: r.options.Strict}
	all := history.Check(h, opt)
	if h.Ops = r.leaveOut(h.Ops, orders); r.misplaced+r.unsure > 0 {
		r.result = history.Check(h, opt)
	} else {
		r.result = all
	}
	r.would = all.Violations() - r.result.Violations()
	r.reported = hadTheyReported(h, r.options.Strict)
	for _, result := range []*history.Result{&r.reported, &r.result} {
		r.untold = nil
		for _, list := range []*[]history.Violation{&result.ReadYourWrites, &result.Monotonic} {
			*list = slices.DeleteFunc(*list, r.isUntold)
		}
	}
}

// locate gives the writes whose position was not captured, and which the old primary
// of a split took, one beyond the switch point.
func locate(ops []history.Op, splits []split) {
	for i := range ops {
		op := &ops[i]
		if s := strayOf(splits, op); s != nil && op.Outcome == history.OK && op.Position == 0 {
			op.Timeline, op.Position = s.promotion.OldTimeline, s.promotion.SwitchPoint+1
		}
	}
}

// leaveOut returns the operations with those unanswered that nothing is promised for.
func (r *outcome) leaveOut(ops []history.Op, orders map[string]Orders) []history.Op {
	if len(r.splits) == 0 {
		return ops
	}
	ops = slices.Clone(ops)
	for i := range ops {
		op := &ops[i]
		o := orders[op.Process]
		if op.Outcome != history.OK || o.Road != roadPostgres || o.Endpoint != endpointHosts || o.Mode != modeRYW {
			continue
		}
		switch s := strayOf(r.splits, op); {
		case op.Kind == history.Read && op.Role == history.Primary && whileSplit(r.splits, op.Start, op.End, 0):
			r.unsure++
		case s != nil && op.Timeline != s.promotion.OldTimeline:
			r.misplaced++
		default:
			continue
		}
		op.Outcome = history.Unknown
	}
	return ops
}

// strayOf returns the split whose old primary took a write, nil if none did.
func strayOf(splits []split, op *history.Op) *split {
	if op.Kind != history.Write {
		return nil
	}
	return splitThatTook(splits, op.Key, op.Version)
}

func splitThatTook(splits []split, key string, version int64) *split {
	if len(splits) == 0 {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(key, keyPrefix), 10, 64)
	if err != nil {
		return nil
	}
	for i := range splits {
		if splits[i].strays[stray{n, version}] {
			return &splits[i]
		}
	}
	return nil
}

// whileSplit reports whether there were two primaries at some time from one to another,
// or shortly before.
func whileSplit(splits []split, from, to int64, shortly time.Duration) bool {
	return slices.ContainsFunc(splits, func(s split) bool { return from <= s.to+int64(shortly) && to >= s.from })
}

// isUntold files a violation that is none: a version that the old primary took
// without its writer ever learning that, which somebody read there. It cannot survive,
// and the read says that something may be lost.
func (r *outcome) isUntold(v history.Violation) bool {
	if !v.Op.LostReported || splitThatTook(r.splits, v.Op.Key, v.Want.Version) == nil {
		return false
	}
	told := slices.ContainsFunc(v.Timeline, func(op *history.Op) bool {
		return op.Kind == history.Write && op.Outcome == history.OK && op.Version == v.Want.Version
	})
	if !told {
		r.untold = append(r.untold, v)
	}
	return !told
}

// refusedBySplit reports whether a read failed because its process held the older of
// two primaries, or was led to it.
func (r *outcome) refusedBySplit(f *Failure) bool {
	return (f.Class == classStale || f.Class == classNotAdmitted) && whileSplit(r.splits, f.Start, f.End, witnessGap)
}

func ordersOf(c *crew) map[string]Orders {
	by := map[string]Orders{}
	for _, m := range c.workers {
		by[m.orders.Name] = m.orders
	}
	return by
}

func (r *outcome) reportSplits(w io.Writer) {
	strays := 0
	for i := range r.splits {
		strays += len(r.splits[i].strays)
	}
	fmt.Fprintf(w, "times with two primaries\t%d\n", len(r.splits))
	fmt.Fprintf(w, "writes that the older of two primaries took\t%d\n", strays)
	fmt.Fprintf(w, "standbys that stayed behind with what is lost\t%d\n", r.diverged)
	fmt.Fprintf(w, "not promised without rywpgx, left out: writes captured on the other of two primaries\t%d\n", r.misplaced)
	fmt.Fprintf(w, "not promised without rywpgx, left out: reads answered by one of two primaries\t%d\n", r.unsure)
	fmt.Fprintf(w, "violations there would be with those\t%d\n", r.would)
	fmt.Fprintf(w, "excused: lost with the older primary, reported, and its writer was never told\t%d\n", len(r.untold))
}
