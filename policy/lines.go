package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// Errors about a failover.
var (
	// ErrStalePrimary is returned for a read whose session has seen a later
	// timeline than the primary that this process holds is on: another server was
	// promoted, and this one does not know.
	ErrStalePrimary = errors.New("gorm-ryw: the primary is on an older timeline than the session has seen")
	// ErrLostWrite says that something the session has written, or read, may not
	// have survived a failover. The read is served all the same.
	ErrLostWrite = errors.New("gorm-ryw: what the session has written or read may have been lost in a failover")
)

// judgeLines compares what is known of timelines that were left with where they
// ended. What lies before an end, every server on the primary's timeline has; what
// lies beyond it, or is not known to lie before it, may be lost.
func (r *Router) judgeLines(ctx context.Context, q *Request) (lost bool) {
	now := q.Set.Group.Timeline()
	if now == 0 || len(q.need.Lines()) == 0 || onlyLine(&q.need, now) {
		return false
	}
	want := q.need.Position
	if want.Timeline < now {
		want = token.Position{}
	}
	for _, p := range q.need.Lines() {
		if p.Timeline >= now {
			continue
		}
		end, survived, err := ended(ctx, q.Set.Group, p)
		lost = lost || !survived
		if err != nil {
			want = want.Max(p) // of another timeline: the primary serves
			continue
		}
		want = want.Max(token.Position{Timeline: now, LSN: end})
		if survived {
			for _, s := range q.Sessions {
				s.Judged(q.key, p.Timeline, end, now)
			}
		}
	}
	q.need.Position = want
	return lost
}

// redialFor is how long the primary may take to answer on a new connection: when what
// is known of it is too old to be read from, and once for each promotion.
const redialFor = time.Second

func onlyLine(n *session.Need, now uint32) bool {
	return len(n.Lines()) == 1 && n.Lines()[0].Timeline == now
}

func ended(ctx context.Context, g *watcher.Group, p token.Position) (end token.LSN, survived bool, err error) {
	ask, cancel := context.WithTimeout(ctx, redialFor)
	defer cancel()
	end, err = g.EndOf(ask, p.Timeline)
	return end, err == nil && p.LSN <= end, err
}

// CheckPrimary is to be called before sessions read a group's primary: the primary
// has to prove that it has what they have seen, too. It reports what may have been
// lost, and ErrStalePrimary.
func (r *Router) CheckPrimary(ctx context.Context, g *watcher.Group, sessions []*session.Session) (lost bool, err error) {
	if len(sessions) == 0 || len(g.Replicas()) == 0 {
		return false, nil // and nothing is known of the primary
	}
	var need session.Need
	oldest := r.oldest()
	for _, s := range sessions {
		s.Need(&need, g.Key(), oldest)
	}
	if need.Position.IsZero() || need.Aged {
		return false, nil
	}
	if need.Position.Compare(g.Primary.State().Position) > 0 {
		if lost, err = r.askPrimary(ctx, g, need.Position); err != nil {
			return false, err
		}
	}
	return lost || lostLine(ctx, g, &need), nil
}

// Lost reports whether something that sessions have seen may not have survived the
// failovers that are known by now: the server that answered may have been promoted
// after the read was decided. If the primary's position after the read is not known,
// nor is whether it still was the one that the sessions have seen.
func (r *Router) Lost(ctx context.Context, g *watcher.Group, sessions []*session.Session, known bool) bool {
	var need session.Need
	for _, s := range sessions {
		s.Need(&need, g.Key(), r.oldest())
	}
	if need.Aged || len(need.Lines()) == 0 {
		return false
	}
	return !known || lostLine(ctx, g, &need)
}

func lostLine(ctx context.Context, g *watcher.Group, need *session.Need) (lost bool) {
	now := g.Timeline()
	for _, p := range need.Lines() {
		if p.Timeline < now {
			_, survived, _ := ended(ctx, g, p)
			lost = lost || !survived
		}
	}
	return lost
}

// askPrimary is for a position beyond what is known of the primary, which is asked
// now, on a new connection if it seems to have been left behind.
func (r *Router) askPrimary(ctx context.Context, g *watcher.Group, want token.Position) (lost bool, err error) {
	patience := askFor
	if known := g.Timeline(); known != 0 && known < want.Timeline {
		g.Primary.Redial()
		patience = redialFor
	}
	ask, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := g.Primary.Sample(ask)
	have := s.Position
	switch {
	case err != nil && (g.Timeline() == 0 || g.Timeline() >= want.Timeline):
		return false, nil // nothing speaks against it
	case err != nil:
		return false, fmt.Errorf("%w: have timeline %d, want %d: %w", ErrStalePrimary, g.Timeline(), want.Timeline, err)
	case have.Timeline < want.Timeline:
		return false, fmt.Errorf("%w: have %s, want %s", ErrStalePrimary, have, want)
	}
	beyond := have.Timeline == want.Timeline && have.LSN < want.LSN
	if beyond {
		r.counters(g).beyond.Add(1)
	}
	return beyond, nil
}
