package main

import (
	"math"
	"slices"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
)

// outcome is what a router made of a scenario.
type outcome struct {
	reads, writes, errors int
	fromReplicas          int
	fresh                 int   // reads for which some replica was fresh when they began
	perReplica            []int // reads that each replica answered
	took                  []time.Duration
	sent                  []sent
	verdict               history.Result
	served                map[policy.Reason]*servedReads // by replicas, where the router says why
	missed                missed
}

// servedReads are reads that replicas served for the same reason.
type servedReads struct {
	reads  int
	waited time.Duration // together
}

// judge works out what the trial showed.
func (t *trial) judge() *outcome {
	o := &outcome{perReplica: make([]int, len(t.truth.replicas())), sent: t.sent, served: map[policy.Reason]*servedReads{}, missed: missed{}}
	for _, ops := range t.ops {
		t.judgeSession(o, ops)
	}
	slices.Sort(o.took)
	o.verdict = history.Check(t.history, history.Options{})
	return o
}

// judgeSession follows one session and what it must see by the true positions.
func (t *trial) judgeSession(o *outcome, ops []workload.Done) {
	need := uint64(0)
	for _, op := range ops {
		if !op.Began.Before(t.from) {
			t.count(o, op, need)
		}
		if s, _, ok := t.whereDone(op).find(op.Ended); ok && op.Err == nil {
			need = max(need, s.lsn)
		}
	}
}

// whereDone is the log of the server that did an operation.
func (t *trial) whereDone(op workload.Done) *positions {
	for _, p := range t.truth.replicas() {
		if op.Answer.Replica && p.port == op.Answer.Server {
			return p
		}
	}
	return t.truth.logs[0]
}

func (t *trial) count(o *outcome, op workload.Done, need uint64) {
	switch {
	case op.Err != nil:
		o.errors++
		return
	case op.Write:
		o.writes++
		return
	}
	o.reads++
	o.took = append(o.took, op.Ended.Sub(op.Began))
	in, possible := t.freshIn(op.Began, need)
	if possible && in == 0 {
		o.fresh++
	}
	why, told := op.Answer.Detail.(rywplugin.Explanation)
	if op.Answer.Replica {
		o.fromReplicas++
		o.perReplica[slices.Index(t.truth.replicas(), t.whereDone(op))]++
		if told {
			o.serve(why)
		}
		return
	}
	own := in
	if lsn := uint64(why.Want.LSN); lsn != 0 {
		own, _ = t.freshIn(op.Began, lsn)
	}
	o.missed.add(why, in, own, t.estimate(op.Began, need))
}

func (o *outcome) serve(why rywplugin.Explanation) {
	r := o.served[why.Reason]
	if r == nil {
		r = &servedReads{}
		o.served[why.Reason] = r
	}
	r.reads++
	r.waited += why.Waited
}

const never = time.Duration(math.MaxInt64)

// freshIn is how long after at the first replica had need; 0 if one had it by the
// first look that began after at, which is when a message could get there.
func (t *trial) freshIn(at time.Time, need uint64) (in time.Duration, ok bool) {
	in = never
	for _, p := range t.truth.replicas() {
		first, _, found := p.find(at)
		then, reached := p.reached(need, at)
		switch {
		case !found || !reached:
		case first.begun.Equal(then):
			return 0, true
		default:
			in = min(in, then.Sub(at))
		}
	}
	return in, in != never
}

// estimate is the oracle's, of how long a replica takes to need.
func (t *trial) estimate(at time.Time, need uint64) time.Duration {
	least := never
	for _, p := range t.truth.replicas() {
		if s, _, ok := p.find(at); ok && s.alive() {
			least = min(least, t.truth.remaining(s.lsn, need))
		}
	}
	return least
}

// share is the share of reads that replicas answered.
func (o *outcome) share() float64 { return part(o.fromReplicas, o.reads) }

// could is the share of the router's own reads for which a replica was fresh when
// they began.
func (o *outcome) could() float64 { return part(o.fresh, o.reads) }

// questionsOfPrimary is how often the primary was asked for its position, per write.
func (o *outcome) questionsOfPrimary() float64 { return part(int(o.sent[0].questions), o.writes) }

// extra is how many statements there were per read beyond the read itself, the
// three of each write, and one that captures it.
func (o *outcome) extra() float64 {
	all := -int64(o.reads + 3*o.writes)
	for _, s := range o.sent {
		all += s.statements
	}
	capture := min(o.sent[0].questions, int64(o.writes))
	return part(int(all-capture), o.reads)
}

// extraAll is extra with the captures counted.
func (o *outcome) extraAll() float64 {
	all := -int64(o.reads + 3*o.writes)
	for _, s := range o.sent {
		all += s.statements
	}
	return part(int(all), o.reads)
}

// balance is the share of the replica that answered most, of all that replicas
// answered.
func (o *outcome) balance() float64 { return part(slices.Max(o.perReplica), o.fromReplicas) }

func (o *outcome) percentile(p float64) time.Duration {
	if len(o.took) == 0 {
		return 0
	}
	return o.took[min(int(p*float64(len(o.took))), len(o.took)-1)]
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
