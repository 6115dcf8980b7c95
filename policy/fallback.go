package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// ErrOverloaded is returned for a read that no replica qualifies for and that the
// primary is spared: as many reads as [Fallback] allows have fallen back to it. It
// may be tried again later.
var ErrOverloaded = errors.New("gorm-ryw: too many reads fall back to the primary")

// seek is which replicas would do for a read that none does for now.
type seek uint8

const (
	seekNone    seek = iota // what is to be seen is not known, or not of this cluster
	seekHealthy             // any healthy one
	seekCovered             // one whose position covers the need
)

// FallBack sends a read to the primary for the lack of a replica, as far as the caps
// allow, and otherwise goes down the ladder: wait longer, then serve stale if that is
// switched on, or fail.
func (r *Router) FallBack(ctx context.Context, q *Request, why Reason) Decision {
	d := Decision{Level: q.Level, Reason: why, Want: q.need.Want(), Lost: q.lost, Judged: q.token}
	r.fallBack(ctx, q, &d)
	return d
}

func (r *Router) fallBack(ctx context.Context, q *Request, d *Decision) {
	f, g := &r.Settings().Fallback, q.Set.governor
	q.End()
	refused := r.takeTurn(q, f)
	if refused == nil {
		g.count(q, d.Reason)
		return
	}
	why := d.Reason
	timer := r.waitLonger(ctx, q, d, refused)
	switch {
	case d.Replica != nil:
		return
	case timer == nil:
		g.count(q, why)
		return
	case f.Stale && !q.NoReplica && ctx.Err() == nil:
		if rep := r.pick(q, isHealthy); rep != nil {
			g.stale.Add(1)
			d.serve(rep, ServedStale)
			d.Stale = true
			return
		}
	}
	g.overloaded.Add(1)
	d.closest(q)
	d.Reason, d.Err = Overloaded, overload(why, d, refused, timer)
}

// takeTurn lets the read fall back if no cap is reached.
func (r *Router) takeTurn(q *Request, f *Fallback) *refusal {
	if f.Rate <= 0 && f.Concurrent <= 0 {
		return nil
	}
	p, refused := q.Set.governor.take(f, mono.Now())
	q.permit = p
	return refused
}

// count counts what fell back without anything to see; the others are counted when
// they are final.
func (g *governor) count(q *Request, why Reason) {
	if !q.token {
		g.other[why].Add(1)
	}
}

// overload is the error of a read that is neither served nor sent on.
func overload(why Reason, d *Decision, refused *refusal, timer error) error {
	at := ""
	if !d.Want.IsZero() {
		at = fmt.Sprintf(": at %s, want %s", d.Have, d.Want)
	}
	return fmt.Errorf("%w: %s (%s%s; waited %s): %w",
		ErrOverloaded, refused, why, at, d.Waited.Round(time.Microsecond), timer)
}

// The pauses between two looks of a read that waits longer.
const (
	firstLook = time.Millisecond
	maxLook   = 20 * time.Millisecond
)

// waitLonger waits until a replica will do, which it makes the choice, or until the
// read may fall back; the error says which timer ended the wait before. Of all that
// wait for their turn the one in front looks for it, so that a thousand do not.
func (r *Router) waitLonger(ctx context.Context, q *Request, d *Decision, refused *refusal) error {
	f, g := &r.Settings().Fallback, q.Set.governor
	if f.Wait <= 0 {
		return errNoWait
	}
	began, ends := mono.Now(), time.NewTimer(f.Wait)
	if q.began == 0 {
		q.began = began
	}
	defer ends.Stop()
	waited := d.Waited
	defer func() { d.Waited = waited + mono.Now().Sub(began) }()
	q.askSoonest()
	inFront := false
	defer func() {
		if inFront {
			<-g.front
		}
	}()
	look := time.NewTimer(firstLook)
	defer look.Stop()
	for pause := firstLook; ; pause = min(2*pause, maxLook) {
		front, freed := g.front, g.freed
		if inFront {
			front = nil
		} else {
			freed = nil
		}
		select {
		case front <- struct{}{}:
			inFront = true
		case <-freed:
		case <-look.C:
		case <-ends.C:
			return fmt.Errorf("fallback wait of %s passed", f.Wait)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.found(q, d) {
			return nil
		}
		if inFront {
			now := r.takeTurn(q, f)
			if now == nil {
				return nil
			}
			*refused = *now
			if now.retry > 0 {
				pause = min(pause, now.retry)
			}
		}
		q.askSoonest()
		look.Reset(pause)
	}
}

// askSoonest has the replica asked that is expected first to cover what is to be seen.
func (q *Request) askSoonest() {
	if q.seek != seekCovered {
		return
	}
	now := mono.Now()
	if rep, at := q.soonest(now); rep != nil {
		q.ask(rep, at, now)
	}
}

var errNoWait = errors.New("there is no fallback wait to pass")

// found makes a replica the choice that will do by now.
func (r *Router) found(q *Request, d *Decision) bool {
	switch {
	case q.NoReplica:
	case q.seek == seekHealthy:
		if rep := r.pick(q, isHealthy); rep != nil {
			d.serve(rep, Anywhere)
			return true
		}
	case q.seek == seekCovered:
		if rep := r.pick(q, q.covered); rep != nil {
			if st := rep.Node.State(); q.covered(st) {
				d.rely(rep, st, Awaited)
				return true
			}
		}
	}
	return false
}

func isHealthy(st *watcher.State) bool { return st.Healthy }

// End ends a read that fell back to the primary. Idempotent; it does nothing for any
// other read.
func (q *Request) End() {
	q.permit.End()
	q.permit = nil
}

// Counts reports whether the read is counted as one under way that fell back.
func (q *Request) Counts() bool { return q.permit != nil }

// Hand has what it returns end the read instead of the request, which may be reset
// while the read goes on.
func (q *Request) Hand() (end func()) {
	p := q.permit
	q.permit = nil
	return p.End
}
