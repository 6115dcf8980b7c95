package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// ErrNoPosition is returned where a write's position would have to be known, and the
// primary does not tell it.
var ErrNoPosition = errors.New("gorm-ryw: the position of an earlier write is not known")

// WaitReplicated waits until every replica of a set whose position is proven covers
// what a session must see, or ctx ends. A replica that is down, or not proven, is not
// waited for.
func (r *Router) WaitReplicated(ctx context.Context, set *Set, s *session.Session) error {
	q := &Request{Set: set, Level: ReadYourWrites, Sessions: []*session.Session{s}, key: set.Group.Key()}
	r.readNeed(ctx, q)
	if q.need.Marked && !r.resolveMarks(ctx, q) && q.anyProven() {
		return ErrNoPosition
	}
	began := mono.Now()
	for {
		changed := set.Group.Changed()
		behind := q.firstBehind()
		if behind == nil {
			return nil
		}
		at, _ := behind.ExpectedAt(q.need.Want(), mono.Now())
		behind.AskBy(max(at, again(behind.State().At, began)))
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: at %s, want %s: %w",
				behind.Name(), behind.State().Position, q.need.Want(), context.Cause(ctx))
		}
	}
}

// firstBehind returns a replica that is proven to be short of what is to be seen.
func (q *Request) firstBehind() *watcher.Node {
	for _, rep := range q.Set.Replicas {
		if st := rep.Node.State(); st.Proven && !q.covered(st) {
			return rep.Node
		}
	}
	return nil
}
