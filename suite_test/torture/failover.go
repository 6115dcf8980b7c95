package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// failover lets the primary die, promotes the standby that has received most, and
// has the others follow it; the variants of that are in split.go. The old primary
// comes back as a standby some time later, while other faults go on.
func (d *director) failover(ctx context.Context, st *Step) error {
	if err := d.inTurn(ctx, []phase{{"every server is back", d.complete}}); err != nil {
		return err
	}
	old, from := d.site.Primary(), d.rec.Now()
	undo, err := d.hinder(ctx, st.With)
	if err != nil {
		return err
	}
	if err := d.courses()[st.Kind](ctx, st, old, undo); err != nil {
		return err
	}
	d.noted(st.Kind, old.Name()+" to "+d.site.Primary().Name(), from)
	d.returning = d.bringBack(old, st.Hold)
	return nil
}

// course carries out a failover, at some point of which undo ends what hindered a
// standby or the workers.
type course func(ctx context.Context, st *Step, old *rywtest.Server, undo func(context.Context) error) error

func (d *director) courses() map[Kind]course {
	return map[Kind]course{Promote: d.plain, SplitBrain: d.splitBrain, OldReturns: d.oldReturns, Diverge: d.diverge}
}

// plain is a failover in which the old primary dies first.
func (d *director) plain(ctx context.Context, st *Step, old *rywtest.Server, undo func(context.Context) error) error {
	return d.inTurn(ctx, []phase{
		{"the primary is lost", func(ctx context.Context) error { return d.lose(ctx, st, old, d.standbys()) }},
		{"another is promoted", func(ctx context.Context) error { return d.promote(ctx, d.standbys(), nil) }},
		{"what hindered is undone", undo},
		{"the others follow", func(ctx context.Context) error { return d.followAll(ctx, old) }},
	})
}

// phase is a part of a failover.
type phase struct {
	name string
	do   func(context.Context) error
}

// inTurn carries out phases, up to the first that fails, and logs how long they took.
func (d *director) inTurn(ctx context.Context, phases []phase) error {
	for _, p := range phases {
		began := time.Now()
		if err := p.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(d.log, "  %s: %s\n", p.name, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// comeback is a server that is on its way back into the cluster, and no standby
// yet.
type comeback struct {
	server *rywtest.Server
	done   chan struct{} // closed when err is set
	err    error
}

// bringBack makes the old primary a standby, after a pause. The primary may go
// away meanwhile: it is tried again.
func (d *director) bringBack(old *rywtest.Server, after time.Duration) *comeback {
	c := &comeback{server: old, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		ctx, cancel := context.WithTimeout(d.ctx, stepTimeout)
		defer cancel()
		pause(ctx, after)
		began := time.Now()
		c.err = until(ctx, func() (bool, error) { return true, d.reattach(ctx, old) })
		fmt.Fprintf(d.log, "  %s came back in %s\n", old.Name(), time.Since(began).Round(time.Millisecond))
	}()
	return c
}

// complete waits until every server is back.
func (d *director) complete(ctx context.Context) error {
	if d.returning == nil {
		return nil
	}
	select {
	case <-d.returning.done:
		return d.returning.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join waits until nothing is under way any more; the run's context has ended.
func (d *director) join() {
	if d.returning != nil {
		<-d.returning.done
	}
}

// standbys are the servers that follow the primary.
func (d *director) standbys() []*rywtest.Server {
	if d.returning != nil {
		select {
		case <-d.returning.done:
		default:
			return except(d.site.standbys(), d.returning.server)
		}
	}
	return d.site.standbys()
}

func except(list []*rywtest.Server, these ...*rywtest.Server) []*rywtest.Server {
	return slices.DeleteFunc(slices.Clone(list), func(s *rywtest.Server) bool { return slices.Contains(these, s) })
}

// hinder puts a standby into the state it is in when the primary dies, its replay is
// paused, or stops workers. It returns what ends that.
func (d *director) hinder(ctx context.Context, rider *Step) (func(context.Context) error, error) {
	switch {
	case rider == nil:
		return func(context.Context) error { return nil }, nil
	case rider.Kind == FreezeWorkers:
		from, thaw := d.rec.Now(), d.freeze(rider.Worker, rider.Frozen)
		return func(context.Context) error {
			thaw()
			d.noted(FreezeWorkers, fmt.Sprintf("%d workers", rider.Frozen), from)
			return nil
		}, nil
	}
	standbys := d.standbys()
	s := standbys[rider.Standby%len(standbys)]
	from := d.rec.Now()
	if err := s.PauseReplay(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := s.ResumeReplay(ctx)
		if errors.Is(err, rywtest.ErrNotStandby) { // it was promoted
			err = nil
		}
		d.noted(PauseReplay, s.Name(), from)
		return err
	}, nil
}

// lose ends the primary, with its clients cut off first, so that what they were
// not told has not been seen by anybody else either. Without losses the standbys
// that are to survive have received everything by then; with them they were cut off
// before.
func (d *director) lose(ctx context.Context, st *Step, old *rywtest.Server, heirs []*rywtest.Server) error {
	if st.Lossy {
		for _, p := range d.site.upstreamsOf(heirs...) {
			p.Partition()
		}
		pause(ctx, st.Hold/3)
	}
	if others := except(d.standbys(), heirs...); len(others) > 0 {
		for _, p := range d.site.upstreamsOf(others...) {
			p.Partition()
		}
		pause(ctx, answerTime) // what the others show, its writers have been told
	}
	for _, p := range d.site.primaryLinks() {
		p.Partition()
	}
	if !st.Lossy {
		if err := d.awaitReceived(ctx, old, heirs); err != nil {
			return err
		}
	}
	if err := old.Kill(ctx); err != nil {
		return err
	}
	for _, p := range append(d.site.upstreamsOf(d.standbys()...), d.site.clients[old]) {
		p.CutAll() // what is on its way arrives nowhere
	}
	d.site.clients[old].Heal()
	return nil
}

// answerTime is how long the answer to a commit may take to its writer.
const answerTime = 200 * time.Millisecond

// awaitReceived waits until standbys have received what the primary has written.
func (d *director) awaitReceived(ctx context.Context, primary *rywtest.Server, standbys []*rywtest.Server) error {
	want, err := ask[int64](ctx, primary, "select pg_current_wal_flush_lsn() - '0/0'")
	if err != nil {
		return err
	}
	for _, s := range standbys {
		if err := until(ctx, func() (bool, error) {
			have, err := received(ctx, s)
			return have >= want, err
		}); err != nil {
			return fmt.Errorf("wait for %s to receive the primary's last words: %w", s.Name(), err)
		}
	}
	return nil
}

// received is the end of the WAL that a standby has, replayed or not.
func received(ctx context.Context, s *rywtest.Server) (int64, error) {
	return ask[int64](ctx, s, "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'")
}

// promote promotes the standby that has received most: nothing that was seen on
// any of them is lost with it. Then everybody who wants a primary is led there, but
// for one standby, or none.
func (d *director) promote(ctx context.Context, heirs []*rywtest.Server, but *rywtest.Server) error {
	var best *rywtest.Server
	most := int64(-1)
	for _, s := range heirs {
		have, err := received(ctx, s)
		if err != nil {
			return err
		}
		if have > most {
			best, most = s, have
		}
	}
	at := d.rec.Now()
	if err := best.Promote(ctx); err != nil {
		return err
	}
	p, err := promotionOf(ctx, best)
	if err != nil {
		return err
	}
	p.At = at
	d.rec.Promotion(p)
	versions, err := ask[map[string]int64](ctx, best, "select json_object_agg(id, v) from items")
	if err != nil {
		return err
	}
	d.survived = append(d.survived, survivors{promotion: p, versions: versions})
	d.site.leadTo(best, but)
	// A standby can prove which timeline it is on only behind a checkpoint on it.
	return d.site.exec(ctx, best, "checkpoint")
}

// lastPromotion is the newest one.
func (d *director) lastPromotion() history.Promotion { return d.survived[len(d.survived)-1].promotion }

// survivors are the versions that a new primary began with: none of them is older
// than that, some may be newer already.
type survivors struct {
	promotion history.Promotion
	versions  map[string]int64 // by the key's number
}

// lost reports whether a write that was acknowledged before the promotion is
// missing behind it.
func (s *survivors) lost(w *history.Op) bool {
	return w.End < s.promotion.At && w.Version > s.versions[strings.TrimPrefix(w.Key, keyPrefix)]
}

// promotionOf reads a server's newest timeline and where it began.
func promotionOf(ctx context.Context, s *rywtest.Server) (history.Promotion, error) {
	var p history.Promotion
	name, err := ask[string](ctx, s, "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)")
	if err != nil {
		return p, err
	}
	tl, err := strconv.ParseUint(name, 16, 32)
	if err != nil {
		return p, fmt.Errorf("timeline %q: %w", name, err)
	}
	text, err := ask[string](ctx, s, "select pg_read_file('pg_wal/"+name+".history')")
	if err != nil {
		return p, err
	}
	p.NewTimeline = uint32(tl)
	return p, lastSwitch(text, &p)
}

// lastSwitch reads the last line of a timeline history file: the timeline that
// was left, and where.
func lastSwitch(text string, p *history.Promotion) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(fields) < 2 {
		return fmt.Errorf("timeline history %q: want a timeline and a position", text)
	}
	old, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return fmt.Errorf("timeline history %q: %w", text, err)
	}
	p.OldTimeline = uint32(old)
	p.SwitchPoint, err = history.ParseLSN(fields[1])
	return err
}

// followAll waits until the standbys that stayed receive from the new primary. One
// that does not, because it has what the new primary lacks, is made to.
func (d *director) followAll(ctx context.Context, but ...*rywtest.Server) error {
	for _, s := range except(d.site.standbys(), but...) {
		if err := d.settle(ctx, s); err != nil {
			fmt.Fprintf(d.log, "%s does not follow by itself (%v), it is rebuilt\n", s.Name(), err)
			if err := d.reattach(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// reattach makes a server a standby of the primary, by pg_rewind or a new base
// backup.
func (d *director) reattach(ctx context.Context, s *rywtest.Server) error {
	if err := s.Follow(ctx, d.site.Primary()); err != nil {
		return err
	}
	if err := d.site.reroute(ctx, s); err != nil {
		return err
	}
	return d.settle(ctx, s)
}

// settleTimeout is how long a standby may take to go over to a new primary.
const settleTimeout = 20 * time.Second

// settle waits until a standby receives from the primary and has replayed its
// checkpoint, then has it record that.
func (d *director) settle(ctx context.Context, s *rywtest.Server) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	primary := d.site.Primary()
	want, err := primary.Position(ctx)
	if err != nil {
		return err
	}
	const streams = "select coalesce((select status from pg_stat_wal_receiver), '') = 'streaming'"
	if err := until(ctx, func() (bool, error) { return ask[bool](ctx, s, streams) }); err != nil {
		return err
	}
	if err := s.WaitCaughtUp(ctx, want); err != nil {
		return err
	}
	return d.site.exec(ctx, s, "checkpoint")
}

// until asks again and again. An error of a server that is just starting passes.
func until(ctx context.Context, f func() (bool, error)) error {
	var last error
	for {
		ok, err := f()
		if ok && err == nil {
			return nil
		}
		last = err
		pause(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// calm ends the run: everything is healed and every standby has everything.
func (d *director) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := d.complete(ctx); err != nil {
		return err
	}
	return d.site.WaitReplicated(ctx)
}
