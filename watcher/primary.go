package watcher

import (
	"context"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
)

const metKey = "gorm-ryw: timeline of the primary that the connection was opened to"

// Meet takes up what a connection that was just opened for the application says of
// the primary it is to. A timeline never changes while a server is a primary, and
// the later one is the one that was promoted: one behind what is known already is
// not the primary any more, and its connection must be closed; one beyond it is
// where the node's own connections have to go.
func (n *Node) Meet(conn *pgx.Conn, s Sample) error {
	known := n.group.Timeline()
	if s.Standby || s.Pooled || s.System != n.group.Key().System && n.group.Known() {
		return nil // the position of each commit is judged by itself
	}
	if s.Position.Timeline < known {
		return fmt.Errorf("admit connection to %s: %w: primary of timeline %d, want %d",
			n.Name(), ErrNotAdmitted, s.Position.Timeline, known)
	}
	data := conn.PgConn().CustomData()
	data[metKey], data[suspectedKey] = s.Position.Timeline, n.suspected.Load()
	n.meet(s.Position)
	return nil
}

func (n *Node) meet(p token.Position) {
	known := n.group.Timeline()
	n.group.raise(p.Timeline)
	if known != 0 && p.Timeline > known {
		n.Redial()
		n.AskBy(mono.Now())
	}
}

// Heard is Meet for a later answer on such a connection.
func (n *Node) Heard(s Sample) {
	if !s.Standby && !s.Pooled && (s.System == n.group.Key().System || !n.group.Known()) {
		n.meet(s.Position)
	}
}

// Met reports whether a connection that was met may be used again: not if another
// server was promoted since, nor if it is found dead after the primary was suspected.
func (n *Node) Met(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	timeline, ok := data[metKey].(uint32)
	if !ok {
		return true
	}
	if suspected := n.suspected.Load(); data[suspectedKey] != suspected {
		ctx, cancel := context.WithTimeout(n.ctx, n.group.cfg.ProbeTimeout)
		defer cancel()
		if conn.PgConn().Ping(ctx) != nil {
			return false
		}
		data[suspectedKey] = suspected
	}
	return timeline >= n.group.Timeline()
}

const suspectedKey = "gorm-ryw: how often the primary had been suspected when the connection was found alive"

// Suspect has every connection to the primary that was opened before asked for a sign of
// life, once, before it is used again: one has turned out to be dead, and what is sent on
// another is lost, too, if its server went away.
func (n *Node) Suspect() { n.suspected.Add(1) }
