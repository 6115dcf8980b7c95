package watcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5/pgconn"
)

// lineage is where the timelines ended that the primary's came from. What was
// written on one of them beyond its end is not in the primary's history.
type lineage struct {
	turn turn   // protects what follows, while the primary is asked, too
	of   uint32 // the timeline whose ancestors ends holds
	ends map[uint32]token.LSN
	err  error        // why they are not known
	at   mono.Instant // when that was found out
}

// How long the primary is not asked again after it refused to tell, or did not
// answer.
const (
	afterRefusal  = 10 * time.Second
	afterNoAnswer = 200 * time.Millisecond
)

func (l *lineage) askAgain() bool {
	var refused *pgconn.PgError
	pause := afterNoAnswer
	if errors.As(l.err, &refused) || errors.Is(l.err, errBadAnswer) {
		pause = afterRefusal
	}
	return l.err != nil && mono.Now().Sub(l.at) > pause
}

var errNoAncestor = errors.New("timeline is not an ancestor of the primary's")

// Timeline is the timeline of the newest answer of the primary; zero before the
// first.
func (g *Group) Timeline() uint32 { return g.timeline.Load() }

// EndOf returns where a timeline ended that the primary's came from. The primary is
// asked once for each promotion, by TIMELINE_HISTORY, which needs the REPLICATION
// attribute (PostgreSQL manual, 55.4); without it the end is not known.
func (g *Group) EndOf(ctx context.Context, timeline uint32) (token.LSN, error) {
	l := &g.lineage
	now := g.Timeline()
	if err := l.turn.take(ctx); err != nil {
		return 0, err
	}
	defer l.turn.leave()
	if l.of != now || l.askAgain() {
		l.ends, l.err = g.askLineage(ctx, now)
		l.of, l.at = now, mono.Now()
	}
	if l.err != nil {
		return 0, l.err
	}
	end, ok := l.ends[timeline]
	if !ok {
		return 0, errNoAncestor
	}
	return end, nil
}

func (g *Group) askLineage(ctx context.Context, timeline uint32) (map[uint32]token.LSN, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.ProbeTimeout)
	defer cancel()
	conn, err := g.Primary.dial(pgdial.WalSender(ctx))
	if err != nil {
		return nil, fmt.Errorf("timeline history of %s: %w", g.Primary.Name(), err)
	}
	defer (&Probe{conn: conn}).close()
	res, err := conn.PgConn().Exec(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", timeline)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("timeline history of %s: %w", g.Primary.Name(), err)
	}
	row, err := oneRow(res)
	if err != nil || len(row) != 2 {
		return nil, fmt.Errorf("timeline history of %s: %w", g.Primary.Name(), errBadAnswer)
	}
	return parseLineage(string(row[1]))
}

// parseLineage reads a timeline history file: number, end and reason, one timeline
// a line, separated by tabs.
func parseLineage(text string) (map[uint32]token.LSN, error) {
	ends := map[uint32]token.LSN{}
	for line := range strings.Lines(text) {
		var timeline, high, low uint32
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%d %X/%X", &timeline, &high, &low); err != nil {
			return nil, fmt.Errorf("timeline history: %w", errBadAnswer)
		}
		ends[timeline] = token.LSN(uint64(high)<<32 | uint64(low))
	}
	return ends, nil
}

// Redial has the node's next question asked on a new connection: what its address
// leads to may have changed.
func (n *Node) Redial() {
	n.epoch.Add(1)
	n.mu.Lock()
	n.retryAt = 0 // where it led before, nobody may have answered
	n.mu.Unlock()
}
