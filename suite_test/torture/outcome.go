package main

import (
	"slices"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// outcome is what came out of a run.
type outcome struct {
	options *Options
	tally   Tally // of all workers; Failures in the order of time
	workers []*member
	faults  [kinds]int
	spans   []span
	frozen  []frozen
	crashes []crash
	// replicaReads is when judged reads began that a replica answered, in the
	// order of time.
	replicaReads []int64
	result       history.Result
	// reported is the verdict if every read had reported possibly lost writes.
	reported   history.Result
	promotions []history.Promotion
	splits     []split
	diverged   int
	notPromised
	// The failures: of writes; of reads while no node could serve, whose worker
	// was frozen past their deadline, that were refused while there were two
	// primaries, behind their first row, and while a node could serve.
	writes, unserved, slept, split, broken, served []Failure
	// refused are those of the unserved that mode Strict refused, although a node
	// was there.
	refused []Failure
	// unnoticed are those of the unserved that a standby could have served
	// which the library need not have known yet.
	unnoticed int
}

func newOutcome(o *Options, d *director, w *witness, c *crew) (*outcome, error) {
	r := &outcome{options: o, workers: c.workers, faults: d.counts, spans: d.spans, frozen: d.frozen, crashes: d.crashes}
	r.tally.Reasons = map[policy.Reason]int64{}
	parts := []history.History{d.rec.History()}
	for _, m := range c.workers {
		parts = append(parts, m.part)
		m.tally.of(m.orders.Name)
		r.tally.add(m.tally)
	}
	h, err := history.Merge(parts...)
	if err != nil {
		return nil, err
	}
	locate(h.Ops, d.splits)
	place(h.Ops, d.survived)
	r.splits, r.diverged, r.promotions = d.splits, d.diverged, h.Promotions
	r.judge(h, ordersOf(c))
	r.replicaReads = replicaReads(h.Ops)
	r.tally.Overdue = slices.DeleteFunc(r.tally.Overdue, func(f Failure) bool {
		return f.End-f.Start-int64(asleep(r.frozen, f.worker, f.Start, f.End)) <= int64(opTimeout+overdue)
	})
	r.sort(w)
	return r, nil
}

func replicaReads(ops []history.Op) []int64 {
	var at []int64
	for i := range ops {
		if op := &ops[i]; op.Kind == history.Read && op.Outcome == history.OK && op.Role == history.Replica {
			at = append(at, op.Start)
		}
	}
	slices.Sort(at)
	return at
}

// of says whose failures they are.
func (t *Tally) of(worker string) {
	for _, list := range [][]Failure{t.Failures, t.Overdue} {
		for i := range list {
			list[i].worker = worker
		}
	}
}

// hadTheyReported judges a history as if every read had reported possibly lost
// writes.
func hadTheyReported(h history.History, strict bool) history.Result {
	h.Ops = slices.Clone(h.Ops)
	for i := range h.Ops {
		h.Ops[i].LostReported = true
	}
	return history.Check(h, history.Options{Strict: strict})
}

// place gives the acknowledged writes whose position was not captured one beyond
// the switch point, if the new primary began without them: nobody else can prove
// that they are lost.
func place(ops []history.Op, all []survivors) {
	for i := range ops {
		op := &ops[i]
		if op.Kind != history.Write || op.Outcome != history.OK || op.Position != 0 {
			continue
		}
		for k := range all {
			if p := all[k].promotion; all[k].lost(op) {
				op.Timeline, op.Position = p.OldTimeline, p.SwitchPoint+1
				break
			}
		}
	}
}

// add adds up.
func (t *Tally) add(o *Tally) {
	t.Ops += o.Ops
	t.StaleReads += o.StaleReads
	t.Receives += o.Receives
	t.Dropped += o.Dropped
	t.CloseTook = max(t.CloseTook, o.CloseTook)
	for reason, n := range o.Reasons {
		t.Reasons[reason] += n
	}
	t.Failures = append(t.Failures, o.Failures...)
	t.Overdue = append(t.Overdue, o.Overdue...)
	t.SlowestRead = slower(t.SlowestRead, o.SlowestRead)
	t.SlowestWrite = slower(t.SlowestWrite, o.SlowestWrite)
}

func slower(a, b Slow) Slow {
	if a.Nanos > b.Nanos {
		return a
	}
	return b
}

// sort tells the failures apart.
func (r *outcome) sort(w *witness) {
	slices.SortFunc(r.tally.Failures, func(a, b Failure) int { return int(a.Start - b.Start) })
	for _, f := range r.tally.Failures {
		if f.Write {
			r.writes = append(r.writes, f)
			continue
		}
		asked := wanted{
			from: f.Start, to: f.End, endpoint: f.Endpoint,
			strong: f.Primary != "", lsn: f.LSN, timeline: f.Timeline, seen: f.Seen,
		}
		if f.Class == classRefused {
			r.unserved = append(r.unserved, f) // what mode Strict is for
			if f.server = w.server(asked, r.options.noticed()); f.server != "" {
				r.refused = append(r.refused, f)
			}
			continue
		}
		if f.Begun {
			r.broken = append(r.broken, f)
			continue
		}
		if r.refusedBySplit(&f) {
			r.split = append(r.split, f)
			continue
		}
		if r.overslept(&f) {
			r.slept = append(r.slept, f)
			continue
		}
		if f.server = w.server(asked, r.options.noticed()); f.server != "" {
			r.served = append(r.served, f)
			continue
		}
		r.unserved = append(r.unserved, f)
		if w.server(asked, 0) != "" {
			r.unnoticed++
		}
	}
}

// overslept reports whether an operation met its deadline, or a connection's, only
// because its worker was frozen.
func (r *outcome) overslept(f *Failure) bool {
	nap := asleep(r.frozen, f.worker, f.Start, f.End)
	return nap > 0 && strings.Contains(f.Class, classTimeout) && time.Duration(f.End-f.Start)-nap < connectTimeout
}

// ok reports whether the run proved what it is to prove: the library that nothing
// is wrong, a control that the faults are such that it is.
func (r *outcome) ok() bool {
	broken := r.result.Violations() > 0 || len(r.result.Unknown) > 0
	if r.options.control() {
		return r.result.Violations() > 0
	}
	figures := r.figures()
	return !broken && len(r.served) == 0 && len(r.tally.Overdue) == 0 && figures.missed() == nil
}

// share is the share of judged reads that replicas answered, in percent.
func (r *outcome) share() float64 {
	if r.result.Reads == 0 {
		return 0
	}
	return 100 * float64(r.result.ReplicaReads) / float64(r.result.Reads)
}
