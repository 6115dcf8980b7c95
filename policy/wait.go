package policy

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// wait looks for a replica that covers what is to be seen when one is expected to,
// until the budget is used up or ctx ends. If none is expected within the budget, it
// does not wait at all. The budget is the router's own: a caller's longer deadline
// does not lengthen it.
func (r *Router) wait(ctx context.Context, q *Request, d *Decision) {
	now := mono.Now()
	if q.giveUp == 0 {
		q.began, q.giveUp = now, now.Add(r.Settings().Wait)
	}
	var timer *time.Timer
	for ; ; now = mono.Now() {
		changed := q.Set.Group.Changed()
		if rep := r.pick(q, q.covered); rep != nil {
			if st := rep.Node.State(); q.covered(st) {
				d.rely(rep, st, Awaited)
				d.Waited = q.waited(timer)
				return
			}
		}
		rep, next := q.soonest(now)
		check := rep != nil && rep.Checks && !q.NoChecks && q.Checks < checksAtMost
		if rep == nil || next > q.giveUp || next == q.giveUp && !check {
			break
		}
		until := q.giveUp
		switch {
		case !check:
			q.ask(rep, next, now)
		case next <= now:
			d.rely(rep, rep.Node.State(), Checked)
			d.Waited = q.waited(timer)
			return
		default:
			until = next
		}
		if timer == nil {
			timer = time.NewTimer(until.Sub(now))
			defer timer.Stop()
		} else {
			timer.Reset(until.Sub(now))
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			d.Reason, d.Waited = Canceled, q.waited(timer)
			return
		}
	}
	d.Reason = q.whyNone()
	d.Waited = q.waited(timer)
	d.closest(q)
}

// waited is the time since the waiting began; zero if there was none.
func (q *Request) waited(timer *time.Timer) time.Duration {
	if timer == nil {
		return 0
	}
	return mono.Now().Sub(q.began)
}

// soonest returns the replica that is expected first to cover what is to be seen, and
// when it is worth to look.
func (q *Request) soonest(now mono.Instant) (soonest *Replica, next mono.Instant) {
	var looked mono.Instant
	for _, rep := range q.Set.Replicas {
		looked = max(looked, rep.Node.State().At)
	}
	offset := rand.IntN(len(q.Set.Replicas))
	for i := range q.Set.Replicas {
		rep := q.Set.Replicas[(i+offset)%len(q.Set.Replicas)]
		if rep == q.Exclude || !q.mayCover(rep.Node.State()) {
			continue
		}
		at, known := rep.Node.ExpectedAt(q.need.Want(), now)
		if known {
			at = max(at, again(looked, q.began)) // one of several at a time
		}
		if at = max(at, now); soonest == nil || at < next {
			soonest, next = rep, at
		}
	}
	return soonest, next
}

// again is when it is worth to look once more for somebody who has waited since began
// and has looked in vain: after a while that grows. Zero if nobody has looked since.
func again(looked, began mono.Instant) mono.Instant {
	if looked <= began {
		return 0
	}
	return looked.Add(max(lookAgain, looked.Sub(began)/4))
}

// ask has the replica that is expected first asked then. One of which nothing is known
// is asked together with all others of its kind: it may not answer.
func (q *Request) ask(first *Replica, at, now mono.Instant) {
	first.Node.AskBy(at)
	if _, known := first.Node.ExpectedAt(q.need.Want(), now); known {
		return
	}
	for _, rep := range q.Set.Replicas {
		if _, known := rep.Node.ExpectedAt(q.need.Want(), now); !known && rep != q.Exclude && q.mayCover(rep.Node.State()) {
			rep.Node.AskBy(at)
		}
	}
}

// lookAgain is the least time between two looks at a replica that is expected to have
// caught up.
const lookAgain = time.Millisecond

// whyNone says why no replica qualifies.
func (q *Request) whyNone() Reason {
	why := NoneHealthy
	for _, rep := range q.Set.Replicas {
		st := rep.Node.State()
		switch {
		case rep == q.Exclude:
			why = max(why, ReplicaFailed)
		case st.Proven && q.need.Position.Timeline != 0 && st.Position.Timeline != q.need.Position.Timeline:
			if why != Behind {
				why = OtherTimeline
			}
		case st.Proven:
			return Behind
		case st.Healthy && why == NoneHealthy:
			why = NoneProven
		}
	}
	return why
}

// closest notes the position of the replica that was least short.
func (d *Decision) closest(q *Request) {
	for _, rep := range q.Set.Replicas {
		st := rep.Node.State()
		if st.Proven && st.Position.Compare(d.Have) > 0 {
			d.Have = st.Position
			d.Age = mono.Now().Sub(st.Begun)
		}
	}
}
