package doctor

import (
	"context"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// compare looks at how replicas and primary belong together.
func (d *doctor) compare(ctx context.Context) {
	if d.primary.sample == nil {
		return
	}
	seen := map[token.Incarnation]*server{d.primary.sample.Incarnation: d.primary}
	for _, s := range d.replicas {
		if s.sample == nil {
			continue
		}
		d.sameCluster(ctx, s)
		if other := seen[s.sample.Incarnation]; other != nil && !s.several {
			d.say(s, Warn, "duplicate", "the same server as "+other.label(), "it is one server, asked twice and counted twice", "each server once")
		}
		seen[s.sample.Incarnation] = s
	}
}

func (d *doctor) sameCluster(ctx context.Context, s *server) {
	p := d.primary.sample
	if s.sample.System != p.System {
		d.say(s, Fail, "cluster", fmt.Sprintf("system identifier %d, the primary's is %d", s.sample.System, p.System),
			"it is a replica of something else: it serves no reads", "the address of a standby of this primary")
		return
	}
	if !s.sample.Standby || d.primary.sample.Standby {
		return // said already
	}
	ask, cancel := d.step(ctx)
	defer cancel()
	// A replica cannot be ahead of a primary that was asked later.
	replica, err := s.probe.Take(ask)
	if err != nil {
		d.say(s, Fail, "cluster", reason(ask, err), "not compared", "see the server's log")
		return
	}
	primary, err := d.primary.probe.Take(ask)
	if err != nil {
		d.say(d.primary, Fail, "cluster", reason(ask, err), "not compared", "see the server's log")
		return
	}
	switch {
	case replica.Position.Timeline != primary.Position.Timeline:
		d.say(s, Fail, "timeline", fmt.Sprintf("%d as far as it can prove, the primary's is %d", replica.Position.Timeline, primary.Position.Timeline),
			"it serves no token reads: it follows another primary, or has not made a restartpoint since the failover",
			"on the primary: checkpoint; then on this server: checkpoint; if it stays so, pg_rewind or a new base backup")
	case replica.Position.LSN > primary.Position.LSN:
		d.say(s, Fail, "timeline", fmt.Sprintf("at %s, ahead of the primary at %s", replica.Position, primary.Position),
			"it is on another history: it serves no reads", "pg_rewind, or a new base backup")
	default:
		d.say(s, OK, "cluster", fmt.Sprintf("of the primary's, on its timeline, %d bytes behind", primary.Position.LSN-replica.Position.LSN), "", "")
	}
}
