package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
)

// A write that no table holds: a message in the WAL that only logical decoding would
// show, or a transaction that did nothing but get its number. The first is flushed
// like any commit, the second some time later.
const (
	messageSQL = "select pg_logical_emit_message(true, 'gorm-ryw doctor', '')"
	numberSQL  = "select pg_current_xact_id()"
)

const rounds = 5

// slow is how long a commit may take to a replica before a word is lost about it.
const slow = time.Second

// follow writes, captures and waits for each replica, as a session would.
func (d *doctor) follow(ctx context.Context) {
	if d.primary.sample == nil || d.primary.sample.Standby {
		return
	}
	times := make([][]time.Duration, len(d.replicas))
	behind := make([]bool, len(d.replicas))
	for range rounds {
		at, err := d.write(ctx)
		if err != nil {
			d.say(d.primary, Warn, "follow", reason(ctx, err), "no write was followed to the replicas", "a role that may write")
			return
		}
		for i, a := range d.arrivals(ctx, at, behind) {
			switch {
			case a == nil:
			case a.err != nil:
				behind[i] = true
				d.late(d.replicas[i], a.last, at, a.err)
			default:
				times[i] = append(times[i], a.took)
			}
		}
	}
	for i, s := range d.replicas {
		if !behind[i] && len(times[i]) > 0 {
			d.followed(s, times[i])
		}
	}
}

// arrival is how a write came to a replica.
type arrival struct {
	took time.Duration
	last token.Position // where the replica was last
	err  error          // the write did not come
}

// arrivals waits for all replicas at the same time, so that one that stands still
// takes nothing of the others' time. Nil: that replica was not looked at.
func (d *doctor) arrivals(ctx context.Context, at token.Position, behind []bool) []*arrival {
	all, begun := make([]*arrival, len(d.replicas)), time.Now()
	var looking sync.WaitGroup
	for i, s := range d.replicas {
		if !s.useful() || behind[i] {
			continue
		}
		a := &arrival{}
		all[i] = a
		looking.Go(func() {
			a.last, a.err = d.await(ctx, s, at, begun)
			a.took = time.Since(begun)
		})
	}
	looking.Wait()
	return all
}

// useful reports whether a replica might serve token reads at all.
func (s *server) useful() bool {
	return s.sample != nil && s.sample.Standby && !s.several
}

// write commits something and returns where.
func (d *doctor) write(ctx context.Context) (token.Position, error) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	_, err := d.primary.rows(ctx, messageSQL)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		_, err = d.primary.rows(ctx, numberSQL)
	}
	if err != nil {
		return token.Position{}, err
	}
	s, err := d.primary.probe.Take(ctx)
	return s.Position, err
}

var errNotThere = errors.New("not there in time")

// await asks a replica until it is at a position, and returns where it was last.
func (d *doctor) await(ctx context.Context, s *server, at token.Position, begun time.Time) (token.Position, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, begun.Add(d.Wait), errNotThere)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last watcher.Sample
	for {
		next, err := s.probe.Take(ctx)
		switch {
		case err == nil && next.Position.Timeline == at.Timeline && next.Position.LSN >= at.LSN:
			return next.Position, nil
		case err == nil:
			last = next
		case context.Cause(ctx) == nil:
			return last.Position, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last.Position, context.Cause(ctx)
		}
	}
}

func (d *doctor) late(s *server, last, at token.Position, err error) {
	if !errors.Is(err, errNotThere) {
		d.say(s, Fail, "follow", err.Error(), "a write could not be followed to it", "see the server's log")
		return
	}
	d.say(s, Fail, "follow", fmt.Sprintf("a write did not arrive within %s: at %s, want %s", d.Wait, last, at),
		"reads under tokens go to the primary",
		"on the primary: select application_name, state, replay_lsn from pg_stat_replication;\non this server: select pg_get_wal_replay_pause_state(), status from pg_stat_wal_receiver;")
}

func (d *doctor) followed(s *server, times []time.Duration) {
	slices.Sort(times)
	typical, worst := times[len(times)/2], times[len(times)-1]
	found := fmt.Sprintf("%d writes arrived, typically after %s, at most %s", len(times), short(typical), short(worst))
	if typical > slow {
		d.say(s, Warn, "follow", found, "it is behind for longer than reads wait: reads of recent writes go to the primary", "a faster replica, or less to write at once")
		return
	}
	d.say(s, OK, "follow", found, "", "")
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
