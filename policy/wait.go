package policy

import (
	"context"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// wait has the replicas probed until one covers what is to be seen, the budget
// is used up, or ctx ends. The budget is the router's own: a caller's longer
// deadline does not lengthen it.
func (r *Router) wait(ctx context.Context, q *Request, d *Decision) {
	d.Reason = q.whyNone()
	budget := r.Settings().Wait
	nodes := q.worthWaiting()
	if budget <= 0 || len(nodes) == 0 || q.Checks >= checksAtMost {
		d.closest(q)
		return
	}
	began := mono.Now()
	release := q.Set.Group.Demand(nodes)
	defer release()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	for last := false; ; {
		changed := q.Set.Group.Changed()
		if rep := r.pick(q, q.covered); rep != nil {
			if st := rep.Node.State(); q.covered(st) {
				d.rely(rep, st, Awaited)
				d.Waited = mono.Now().Sub(began)
				return
			}
		}
		if last {
			d.Waited = mono.Now().Sub(began)
			if r.check(q, d) {
				return
			}
			d.Reason = q.whyNone()
			d.closest(q)
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			last = true
		case <-ctx.Done():
			d.Reason, d.Waited = Canceled, mono.Now().Sub(began)
			return
		}
	}
}

// worthWaiting returns the nodes that may cover the need soon.
func (q *Request) worthWaiting() []*watcher.Node {
	var nodes []*watcher.Node
	for _, rep := range q.Set.Replicas {
		st := rep.Node.State()
		sameLine := q.need.Position.Timeline == 0 || q.need.Position.Timeline == st.Position.Timeline
		if rep != q.Exclude && st.Proven && sameLine {
			nodes = append(nodes, rep.Node)
		}
	}
	return nodes
}

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
