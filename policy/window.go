package policy

import "time"

// inWindow reports whether the sessions' last write is younger than the time window.
// A write without a date, as in a bare LSN, has no window: its position alone decides.
func (r *Router) inWindow(q *Request) bool {
	w := r.Settings().Window
	return w > 0 && !q.need.Written.IsZero() && time.Since(q.need.Written) < w
}

// windowDecides reports whether the time window is all there is to go by: no replica
// has a position that could be relied on, now or later, and at least one is healthy.
// One that had such a position is waited for, however long it is down.
func (r *Router) windowDecides(q *Request) bool {
	if r.Settings().Window <= 0 {
		return false
	}
	healthy := false
	for _, rep := range q.Set.Replicas {
		if !rep.Node.Positionless() {
			return false
		}
		healthy = healthy || rep != q.Exclude && rep.Node.State().Healthy
	}
	return healthy
}

// afterWindow is for servers without usable positions once the window has passed.
func (r *Router) afterWindow(q *Request, d *Decision) {
	if q.need.Undated {
		d.Reason = NoneProven
		return
	}
	q.seek = seekHealthy
	if rep := r.pickHealthy(q); rep != nil {
		d.serve(rep, AfterWindow)
		return
	}
	d.Reason = NoneHealthy
}
