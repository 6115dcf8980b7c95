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

// admitTimeout bounds how long Admit waits for a standby that was restarted to
// replay what it had replayed before.
const admitTimeout = 5 * time.Second

// Admit checks a connection that was just opened for the application. After nil,
// whatever position was ever published for the node holds on that connection
// too: it is to the same incarnation, and that had replayed at least as far when
// asked on this very connection. Otherwise the connection must be closed.
//
// A standby that crashed accepts connections before it is back at its old
// position; Admit waits for it, and for the watcher to find the new incarnation,
// until ctx ends or five seconds passed.
//
// A node whose pool serves no token reads is not checked.
func (n *Node) Admit(ctx context.Context, conn *pgx.Conn) error {
	if n.untrusted.Load() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, admitTimeout,
		fmt.Errorf("admission timeout of %s passed", admitTimeout))
	defer cancel()
	p := &Probe{conn: conn}
	reconnected := false
	for {
		changed := n.group.Changed()
		s, err := p.Take(ctx)
		if err != nil {
			return fmt.Errorf("admit connection to %s: %w", n.Name(), causeOf(ctx, err))
		}
		st := n.State()
		if st.admits(s) {
			return nil
		}
		seen, err := n.Sample(ctx)
		switch {
		case n.State().admits(s):
			return nil
		case err == nil && seen.Incarnation != s.Incarnation && reconnected:
			return n.severalServers(s, seen)
		case err == nil && seen.Incarnation != s.Incarnation:
			n.epoch.Add(1) // ask again on a new connection
			reconnected = true
			continue
		}
		if err := n.awaitChange(ctx, changed, s); err != nil {
			return err
		}
	}
}

// admits reports whether a connection that said s serves what st promises.
func (st *State) admits(s Sample) bool {
	return !st.Failed && st.Incarnation == s.Incarnation && !s.Pooled && s.Position.Compare(st.High) >= 0
}

func (n *Node) severalServers(have, want Sample) error {
	why := "several servers answer at this address"
	if have.Pooled || want.Pooled {
		why = "is behind a connection pooler"
	}
	if n.untrusted.CompareAndSwap(nil, &why) {
		n.group.update(n, func(old *State) *State { return n.judge(old.Sample, old) })
	}
	return fmt.Errorf("admit connection to %s: %w: %s", n.Name(), ErrNotAdmitted, why)
}

func (n *Node) awaitChange(ctx context.Context, changed <-chan struct{}, s Sample) error {
	timer := time.NewTimer(firstBackoff)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		st := n.State()
		return fmt.Errorf("admit connection to %s: %w: at %s, want %s (%w)",
			n.Name(), ErrNotAdmitted, s.Position, st.High, context.Cause(ctx))
	}
	return nil
}
