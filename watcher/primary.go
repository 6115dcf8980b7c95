package watcher

import (
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
	conn.PgConn().CustomData()[metKey] = s.Position.Timeline
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
// server was promoted since.
func (n *Node) Met(conn *pgx.Conn) bool {
	timeline, ok := conn.PgConn().CustomData()[metKey].(uint32)
	return !ok || timeline >= n.group.Timeline()
}
