package policy

import (
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// checksAtMost is how many checked reads one read makes: each goes to a replica that
// is not known to have caught up but may have by now, and whose driver can prove that
// with the read itself. One that finds its replica behind is a read wasted.
const checksAtMost = 2

// mayCover reports whether a state's node may have replayed by now what is to be
// seen.
func (q *Request) mayCover(st *watcher.State) bool {
	if !st.Proven || st.Failed || st.System != q.key.System {
		return false
	}
	return q.need.Position.Timeline == 0 || q.need.Position.Timeline == st.Position.Timeline
}

// Accept judges the sample that came with a checked read of a replica: nil if it
// covers what is to be seen. Without a primary no timeline is proven, see
// [watcher.State], and no new position accepted.
func (q *Request) Accept(rep *Replica, s watcher.Sample) error {
	rep.Node.Publish(s)
	st := *rep.Node.State()
	proven := st.Vouches(s) && q.Set.Group.Primary.State().Healthy
	st.Sample = s
	if proven && q.covered(&st) {
		return nil
	}
	return fmt.Errorf("%s: at %s, want %s", rep.Node.Name(), s.Position, q.need.Want())
}
