package watcher

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
)

// State is what is known of a node, as one immutable record. The zero value
// knows nothing.
type State struct {
	Sample
	// Healthy says that the node may serve reads that ask for nothing.
	Healthy bool
	// Proven says that its position may be relied on for token reads.
	Proven bool
	// Reason says why the node is not healthy or not proven; empty otherwise.
	Reason string
	// Failed says that the last position query failed: the server may be down.
	Failed bool
	// At is when this was learnt.
	At mono.Instant
	// High is the highest position ever published for the node while it was
	// healthy.
	High token.Position

	diverged life // in which the node was found on another history
	streamed bool // in this life it has told what it receives
	held     bool // Sample is an earlier one: what was said since cannot be proved
}

// life is the life of a server on one timeline.
type life struct {
	in       token.Incarnation
	timeline uint32
}

func (s *Sample) life() life { return life{s.Incarnation, s.Position.Timeline} }

// Publish takes up a sample that was taken elsewhere, as with a commit. It is
// ignored unless it is of the server, and the life of it, that the node's own
// connection is to.
func (n *Node) Publish(s Sample) {
	if st := n.State(); !st.Failed && st.Incarnation == s.Incarnation && !s.Pooled {
		n.publish(s)
	}
}

// publish makes a sample the node's state, unless a newer one is there already. Of two
// primaries the one that was promoted later counts, whichever was asked first: the
// other one goes on answering.
func (n *Node) publish(s Sample) {
	n.mu.Lock()
	n.backoff, n.retryAt, n.lastErr = 0, 0, nil
	n.mu.Unlock()
	if s.Standby && !s.Pooled {
		n.placed.Store(true)
	}
	n.group.update(n, func(old *State) *State {
		promoted := n.role == Primary && !s.Standby && s.Position.Timeline > old.Position.Timeline
		if !old.Failed && old.Begun > s.Begun && !promoted {
			return old
		}
		if s.Incarnation != n.life {
			n.life = s.Incarnation
			n.lives.Add(1) // before the state is to be seen
		}
		return n.judge(s, old)
	})
}

// judge says what a sample is good for.
func (n *Node) judge(s Sample, old *State) *State {
	st := &State{Sample: s, At: s.Received, High: old.High, diverged: old.diverged}
	if n.role == Primary {
		st.Healthy = !s.Standby
		st.Proven = st.Healthy
		if s.Standby {
			st.Reason = "is a standby, not the primary"
		}
		return st
	}
	st.streamed = s.Streaming
	if old.Incarnation == s.Incarnation {
		st.streamed = st.streamed || old.streamed
		st.Position.Timeline = max(s.Position.Timeline, old.Position.Timeline) // none is ever left for an older one
	}
	if n.knownUnhealthy(st) {
		return st
	}
	st.Healthy, st.High = true, st.High.Max(st.Position)
	st.Reason = n.whyUnproven(st)
	st.Proven = st.Reason == ""
	unknown := st.Reason == primaryGone || st.Reason == receiverGone
	if unknown && old.Proven && old.Incarnation == s.Incarnation && old.Position.Timeline == st.Position.Timeline {
		// What it said before still holds; how far it got on which timeline
		// since then, nobody can prove.
		kept := *old
		kept.At, kept.held = s.Received, true
		return &kept
	}
	return st
}

// knownUnhealthy gives the reason why a replica may not serve any read.
func (n *Node) knownUnhealthy(st *State) bool {
	system := n.group.Key().System
	switch {
	case !st.Standby:
		st.Reason = "is not a standby"
	case system != 0 && system != st.System:
		st.Reason = fmt.Sprintf("is of another cluster: system identifier %d, want %d", st.System, system)
	case st.Position.Compare(st.High) < 0 && st.Position.LSN < st.High.LSN:
		st.Reason = fmt.Sprintf("position went back to %s after a restart, was %s", st.Position, st.High)
	case st.diverged == st.life():
		st.Reason = divergedReason
	default:
		return false
	}
	return true
}

const (
	primaryGone  = "the primary does not answer as one"
	receiverGone = "does not receive WAL any more"
)

// whyUnproven says why the position of a healthy replica cannot be relied on;
// empty if it can.
func (n *Node) whyUnproven(s *State) string {
	primary := n.group.Primary.State()
	why := n.untrusted.Load()
	switch {
	case why != nil:
		return *why
	case s.Pooled:
		return pooledReason
	case !n.group.Known():
		return "the primary is not known yet"
	case !primary.Healthy:
		return primaryGone
	case primary.Position.Timeline != s.Position.Timeline:
		// A standby's own word lags a promotion: having replayed timeline 1 it
		// may be on timeline 2 by now, without the end of timeline 1.
		return fmt.Sprintf("timeline is not proven: have %d, the primary's is %d",
			s.Position.Timeline, primary.Position.Timeline)
	case s.High.Timeline > s.Position.Timeline:
		return fmt.Sprintf("timeline is not proven: have %d, was %d before a restart",
			s.Position.Timeline, s.High.Timeline)
	case s.streamed && !s.Streaming:
		// What it replays now it may have received from anywhere, and its own word
		// of that comes late.
		return receiverGone
	}
	return ""
}

// Vouches reports whether a sample that was taken elsewhere, as with a read, proves
// its position as one of the node's own does: it is of the same life, and says no
// less of its timeline.
func (st *State) Vouches(of Sample) bool {
	return st.Incarnation == of.Incarnation && st.Position.Timeline == of.Position.Timeline &&
		(of.Streaming || !st.streamed)
}

const pooledReason = "is behind a connection pooler"

const divergedReason = "is ahead of the primary: on another history"

// compare finds a replica that is ahead of a position of the primary asked for
// after the replica's own: no replica of the same history can be.
func (st *State) compare(primary Sample) *State {
	ahead := st.Incarnation != 0 && !st.Failed && st.Standby &&
		primary.Begun > st.Received &&
		st.Position.Timeline == primary.Position.Timeline &&
		st.Position.LSN > primary.Position.LSN
	if !ahead {
		return st
	}
	next := *st
	next.Healthy, next.Proven, next.Reason = false, false, divergedReason
	next.diverged = st.life()
	return &next
}

// supported checks the server's version, which it reported when the connection
// was opened.
func supported(conn *pgx.Conn) error {
	v := conn.PgConn().ParameterStatus("server_version")
	var major int
	if _, err := fmt.Sscanf(v, "%d", &major); err != nil {
		return nil // a pooler may hide it; the position query will tell
	}
	if major < minServerVersion {
		return fmt.Errorf("%w: have PostgreSQL %s, want %d or later", ErrUnsupported, v, minServerVersion)
	}
	return nil
}

func jitter(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)/4+1)) }

// Positionless reports whether nothing this node has ever said could prove how far
// it has replayed, whatever the primary answers: its pool is not trusted, it is behind
// a connection pooler, or it has never answered at all when asked. A node that was
// not asked yet, or once gave a position of its own, is not positionless.
func (n *Node) Positionless() bool {
	if n.untrusted.Load() != nil {
		return true
	}
	st := n.State()
	return !n.placed.Load() && (st.Failed || st.Pooled)
}
