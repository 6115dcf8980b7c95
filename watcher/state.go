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
	// High is the highest position ever published for the node.
	High token.Position
}

// Publish takes up a sample that was taken elsewhere, as with a commit. It is
// ignored unless it is of the server, and the life of it, that the node's own
// connection is to.
func (n *Node) Publish(s Sample) {
	if st := n.State(); !st.Failed && st.Incarnation == s.Incarnation && !s.Pooled {
		n.publish(s)
	}
}

// publish makes a sample the node's state, unless a newer one is there already.
func (n *Node) publish(s Sample) {
	n.mu.Lock()
	n.backoff, n.retryAt, n.lastErr = 0, 0, nil
	n.mu.Unlock()
	n.group.update(n, func(old *State) *State {
		if !old.Failed && old.Begun > s.Begun {
			return old
		}
		return n.judge(s, old)
	})
}

// judge says what a sample is good for.
func (n *Node) judge(s Sample, old *State) *State {
	st := &State{Sample: s, At: s.Received, High: old.High}
	if s.Position.Compare(st.High) > 0 {
		st.High = s.Position
	}
	if n.role == Primary {
		st.Healthy = !s.Standby
		st.Proven = st.Healthy
		if s.Standby {
			st.Reason = "is a standby, not the primary"
		}
		return st
	}
	primary := n.group.Primary.State()
	switch {
	case !s.Standby:
		st.Reason = "is not a standby"
	case primary.System != 0 && primary.System != s.System:
		st.Reason = fmt.Sprintf("is of another cluster: system identifier %d, want %d", s.System, primary.System)
	case s.Position.Compare(old.High) < 0:
		st.Reason = fmt.Sprintf("position went back to %s after a restart, was %s", s.Position, old.High)
	case old.diverged(s):
		st.Reason = old.Reason
	case primary.System == 0:
		st.Healthy = true
		st.Reason = "the primary is not known yet"
	case s.Pooled:
		st.Healthy = true
		st.Reason = "is behind a connection pooler"
	default:
		st.Healthy, st.Proven = true, true
	}
	if st.Proven {
		if why := n.untrusted.Load(); why != nil {
			st.Proven, st.Reason = false, *why
		}
	}
	return st
}

const divergedReason = "is ahead of the primary: on another history"

// diverged reports whether the node had been found on another history in the
// same life and on the same timeline.
func (st *State) diverged(s Sample) bool {
	return st.Reason == divergedReason && st.Incarnation == s.Incarnation && st.Position.Timeline == s.Position.Timeline
}

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
