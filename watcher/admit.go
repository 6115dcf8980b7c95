package watcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotAdmitted is returned by Admit for a connection that cannot be proven to
// be to the server, and to the life of it, that the watcher's positions are of.
var ErrNotAdmitted = errors.New("connection is not proven to be to the watched server")

// admitTimeout bounds Admit. Whoever waits for a connection has other servers to go
// to.
const admitTimeout = time.Second

// The pauses between two looks at a server that the watcher could not ask, because its
// own connection was to an earlier life: each is twice the one before, and there is
// none beyond the last.
const (
	firstAdmitPause = 10 * time.Millisecond
	lastAdmitPause  = 160 * time.Millisecond
)

// Admit checks a connection that was just opened for the application. After nil,
// whatever position was ever published for the node holds on that connection
// too: it is to the same incarnation, and that had replayed at least as far.
// Otherwise the connection must be closed.
//
// A standby that crashed accepts connections before it is back at its old position.
// Such a one is refused at once: a pool opens its connections one after the other, and
// whoever waits for one can go to another server. Admit waits, for some 300 ms, for
// the watcher to find the new incarnation.
//
// A node whose pool serves no token reads is not checked.
func (n *Node) Admit(ctx context.Context, conn *pgx.Conn) error {
	_, err := n.Prove(ctx, conn)
	return err
}

// Prove is Admit and returns the probe that it asked with; nil for a node that is
// not checked.
func (n *Node) Prove(ctx context.Context, conn *pgx.Conn) (*Probe, error) {
	if n.untrusted.Load() != nil {
		return nil, nil
	}
	p := &Probe{conn: conn}
	if err := n.prove(ctx, conn, p); err != nil {
		return nil, err
	}
	return p, nil
}

func (n *Node) prove(ctx context.Context, conn *pgx.Conn, p *Probe) error {
	ctx, cancel := context.WithTimeoutCause(ctx, admitTimeout,
		fmt.Errorf("admission timeout of %s passed", admitTimeout))
	defer cancel()
	for others, rest := 0, firstAdmitPause; ; {
		before := p.Last().Incarnation
		s, err := p.Take(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("admit connection to %s: %w", n.Name(), causeOf(ctx, err))
		case s.Pooled:
			return n.distrust(pooledReason)
		case others > 1 && s.Incarnation == before:
			// This server was alive before and after the watcher met another,
			// on a connection that it had opened for that.
			return n.distrust("several servers answer at this address")
		case n.admits(conn, s):
			if !n.State().Healthy {
				n.Publish(s) // it is back, which the watcher may find out much later
			}
			return nil
		}
		seen, err := n.Sample(ctx)
		switch {
		case n.admits(conn, s):
			return nil
		case err == nil && seen.Incarnation != s.Incarnation:
			others++
			n.epoch.Add(1) // ask again on a new connection
			continue
		case err == nil && seen.Position.Compare(n.State().High) < 0, rest > lastAdmitPause:
			return n.notAdmitted(s, errNotBack)
		}
		if err := n.rest(ctx, s, rest); err != nil {
			return err
		}
		rest *= 2
	}
}

// Admitted reports whether a connection that was admitted may be used again.
// Once another life of a server was published for the node, connections to the
// one before prove nothing any more: if they still work, they are to another
// server than the watcher's.
func (n *Node) Admitted(conn *pgx.Conn) bool {
	return n.untrusted.Load() != nil || conn.PgConn().CustomData()[livesKey] == n.lives.Load()
}

const livesKey = "gorm-ryw: lives of the node when the connection was admitted"

// admits decides on a connection that said s.
func (n *Node) admits(conn *pgx.Conn, s Sample) bool {
	lives := n.lives.Load() // before the state, which may be of a later life
	st := n.State()
	// In one life the position never goes back, so that it is enough for the
	// watcher to have seen it where it was.
	reached := s.Position.Compare(st.High) >= 0 || st.Position.Compare(st.High) >= 0
	if st.Failed || st.Incarnation != s.Incarnation || !reached {
		return false
	}
	conn.PgConn().CustomData()[livesKey] = lives
	return true
}

// distrust keeps the node from serving token reads for good.
func (n *Node) distrust(why string) error {
	if n.untrusted.CompareAndSwap(nil, &why) {
		n.group.notify(Event{Kind: Refused, Node: n, Reason: why})
		n.group.update(n, func(old *State) *State {
			if old.Incarnation == 0 {
				return old
			}
			return n.judge(old.Sample, old)
		})
	}
	return fmt.Errorf("admit connection to %s: %w: %s", n.Name(), ErrNotAdmitted, why)
}

var errNotBack = errors.New("it was restarted, and is not back where it was")

func (n *Node) notAdmitted(s Sample, why error) error {
	return fmt.Errorf("admit connection to %s: %w: at %s, want %s (%w)",
		n.Name(), ErrNotAdmitted, s.Position, n.State().High, why)
}

func (n *Node) rest(ctx context.Context, s Sample, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return n.notAdmitted(s, context.Cause(ctx))
	}
}
