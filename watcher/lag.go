package watcher

import (
	"time"
)

const (
	lagStep = time.Second
	// MaxLag is up to what time a lag can be told apart from a longer one.
	MaxLag = 4 * time.Minute
)

// Lag is how long a replica had been behind when it said where it is: the time since
// the primary was first seen beyond that position. It is zero for one that has all
// the primary has written, however long ago that was. The true lag is not shorter, but
// may be longer by the time between two questions to the primary, and from MaxLag on by
// any time. It is false while it is not known: the node or the primary has not
// answered, or they are not of one history.
func (g *Group) Lag(n *Node) (time.Duration, bool) {
	st := n.State()
	if st.Failed || st.Begun == 0 || !st.Standby {
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if lag, ok := g.past.lag(&st.Sample); ok {
		return lag, true
	}
	return g.long.lag(&st.Sample)
}

// lag is false where the history does not go back to the sample's position.
func (h *history) lag(s *Sample) (time.Duration, bool) {
	before := false
	for i := range historySize {
		p := &h.at[(h.next+i)%historySize]
		switch {
		case p.begun == 0:
		case p.system != s.System || p.pos.Timeline != s.Position.Timeline:
			return 0, false
		case p.pos.LSN <= s.Position.LSN:
			before = true
		default:
			return max(0, s.Begun.Sub(p.begun)), before || h.step != 0
		}
	}
	return 0, before
}
