package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// A run of crashes: of standbys, in turn, now and then of two at once, by each of
// the three kinds. What a standby has replayed since its last restartpoint it
// replays again, and shows an older state meanwhile.
const (
	// crashBehind is how many MB of WAL a standby must at least have to replay
	// again after it has opened for reads, crashAtMost how many it may have since
	// its last restartpoint, which is how long that takes.
	crashBehind, crashAtMost = 100, 400
	// fewConnections is how many connections a pool may have then.
	fewConnections = 4
	// readsPerCrash is how many reads under a token replicas must answer between two
	// crashes.
	readsPerCrash = 1000
)

const megabyte = 1 << 20

// NewCrashes returns a seed's sequence of crashes.
func NewCrashes(seed uint64) *Schedule {
	return &Schedule{rng: rand.New(rand.NewPCG(seed, 0x63726173)), crashes: true}
}

// nextCrash takes the standbys in turn. Each run of as many steps as there are
// kinds of crashes has every kind once.
func (s *Schedule) nextCrash() Step {
	if len(s.deck) == 0 {
		for _, i := range s.rng.Perm(len(crashKinds)) {
			s.deck = append(s.deck, crashKinds[i])
		}
	}
	kind := s.deck[0]
	s.deck = s.deck[1:]
	st := s.crash(kind)
	st.Frozen, st.Worker, st.Thaw = s.rng.IntN(3), s.rng.IntN(6), s.millis(0, 700)
	if other := crashKinds[s.rng.IntN(len(crashKinds))]; s.rng.Float64() < 0.25 {
		with := s.crash(other)
		st.With = &with
	}
	return st
}

var crashKinds = []Kind{KillReplica, KillReplicaBackend, StopReplica}

func (s *Schedule) crash(k Kind) Step {
	st := Step{Kind: k, Standby: s.turn % replicas, Behind: crashBehind, Hold: s.millis(0, 600), Gap: s.millis(600, 1200)}
	s.turn++
	return st
}

// settings are those of all servers, and further ones of the standbys. In a run of
// crashes they keep restartpoints away from the standbys, which are made when the run
// wants them, and WAL for those that are down while much is written.
func (o *Options) settings() (all, ofStandbys map[string]string) {
	if o.Crashes == 0 {
		return settings, nil
	}
	all = maps.Clone(settings)
	all["wal_keep_size"], all["max_wal_size"] = "1GB", "1GB"
	return all, map[string]string{"checkpoint_timeout": "1h", "max_wal_size": "16GB"}
}

// crash is one that was carried out.
type crash struct {
	kind   Kind
	step   int // from 1
	server string
	from   int64 // of the history's clock: when it began
	up     int64 // and when the server answered again
	frozen int   // workers that were, across it
	// Bytes of WAL that the server had replayed: since its last restartpoint,
	// since where it would open for reads, and since where it was when it had
	// just come back.
	restartpoint, open, back int64
}

// crash lets a standby crash with enough behind it, and worker processes sleep
// through that.
func (d *director) crash(ctx context.Context, st *Step, s *rywtest.Server) error {
	before, err := d.behind(ctx, s, int64(st.Behind)*megabyte)
	if err != nil {
		return err
	}
	c := crash{kind: st.Kind, step: d.steps, server: s.Name(), from: d.rec.Now(), frozen: st.Frozen}
	thaw := d.freeze(st.Worker, st.Frozen)
	defer thaw()
	if err := actions[st.Kind](d, ctx, st, s); err != nil {
		return err
	}
	c.up = d.rec.Now()
	after, err := standingOf(ctx, s)
	if err != nil {
		return err
	}
	// A restartpoint that was made after the look before shows in the second one.
	c.restartpoint, c.open, c.back = before.replayed-after.restartpoint, before.replayed-before.opens, before.replayed-after.replayed
	if after.restartpoint != before.restartpoint {
		c.open = 0
	}
	pause(ctx, st.Thaw)
	d.noted(st.Kind, s.Name(), c.from)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crashes = append(d.crashes, c)
	return nil
}

// awaitReads waits until replicas have answered enough reads for some crashes. They
// may take as long as the workers' watchers need to find them back.
func (d *director) awaitReads(ctx context.Context, before int64, crashes int) error {
	if crashes == 0 {
		return nil
	}
	want := before + int64(crashes)*readsPerCrash*11/10
	ctx, cancel := context.WithTimeoutCause(ctx, readsTimeout, fmt.Errorf("not after %s", readsTimeout))
	defer cancel()
	if err := until(ctx, func() (bool, error) { return d.crew.reads() >= want, nil }); err != nil {
		return fmt.Errorf("wait for reads of replicas: have %d, want %d: %w", d.crew.reads()-before, want-before, err)
	}
	return nil
}

// readsTimeout is how long enough reads may take.
const readsTimeout = time.Minute

// standing is where a standby is in the WAL, as its control file says: where a
// crash would have it begin, where it would open for reads then, and where it is.
type standing struct{ restartpoint, opens, replayed int64 }

func standingOf(ctx context.Context, s *rywtest.Server) (at standing, err error) {
	const query = `select array[redo, greatest(redo, (pg_control_recovery()).min_recovery_end_lsn - '0/0'), pg_last_wal_replay_lsn() - '0/0']::bigint[]
		from (select (pg_control_checkpoint()).redo_lsn - '0/0' as redo) c`
	var list []int64
	err = until(ctx, func() (ok bool, err error) {
		list, err = ask[[]int64](ctx, s, query)
		return len(list) == 3, err
	})
	if err != nil {
		return at, err
	}
	return standing{list[0], list[1], list[2]}, nil
}

// behind has a standby replay so much WAL that it must replay at least that many
// bytes again when it crashes, after it has opened for reads.
func (d *director) behind(ctx context.Context, s *rywtest.Server, bytes int64) (standing, error) {
	if err := d.caughtUp(ctx, s); err != nil {
		return standing{}, err
	}
	at, err := standingOf(ctx, s)
	if err == nil && at.replayed-at.restartpoint > crashAtMost*megabyte {
		if err = d.restartpoint(ctx, s); err == nil {
			at, err = standingOf(ctx, s)
		}
	}
	if lacks := bytes - (at.replayed - at.opens); err == nil && lacks > 0 {
		if err = d.ballast(ctx, int(lacks/megabyte)+1, s); err == nil {
			at, err = standingOf(ctx, s)
		}
	}
	return at, err
}

func (d *director) caughtUp(ctx context.Context, s *rywtest.Server) error {
	want, err := d.site.Primary().Position(ctx)
	if err != nil {
		return err
	}
	return s.WaitCaughtUp(ctx, want)
}

// restartpoint has a standby make one: of a checkpoint of the primary that it has
// replayed.
func (d *director) restartpoint(ctx context.Context, s *rywtest.Server) error {
	if err := d.site.exec(ctx, d.site.Primary(), "checkpoint"); err != nil {
		return err
	}
	if err := d.caughtUp(ctx, s); err != nil {
		return err
	}
	return d.site.exec(ctx, s, "checkpoint")
}

// crashes is what a run of crashes comes to.
type crashes struct {
	list   []crash
	reads  int // under a token, answered by replicas, from the first crash on
	fewest int // the same, between two crashes: the fewest
	racing int // begun between a crash and a second after its end, by anybody
}

// figures sums a run of crashes up. Those of one step count as one where something
// is between two crashes.
func (r *outcome) figures() crashes {
	c := crashes{list: slices.Clone(r.crashes)}
	if len(c.list) == 0 {
		return c
	}
	slices.SortFunc(c.list, func(a, b crash) int { return int(a.from - b.from) })
	var between []int
	var starts []int64
	step := 0
	for _, one := range c.list {
		if one.step != step {
			starts, between = append(starts, one.from), append(between, 0)
		}
		step = one.step
	}
	for _, at := range r.replicaReads {
		i, _ := slices.BinarySearch(starts, at+1)
		if i > 0 {
			between[i-1]++
			c.reads++
		}
	}
	c.fewest = slices.Min(between)
	c.racing = c.countRacing(r.replicaReads)
	return c
}

// countRacing counts the reads that a replica answered while one was down or just
// back.
func (c *crashes) countRacing(reads []int64) (n int) {
	for _, at := range reads {
		if slices.ContainsFunc(c.list, func(one crash) bool { return one.from <= at && at < one.up+int64(time.Second) }) {
			n++
		}
	}
	return n
}

// missed says which goals a run of crashes has missed; nil for none.
func (c *crashes) missed() error {
	var errs []error
	for _, one := range c.list {
		if min(one.restartpoint, one.open) < crashBehind*megabyte {
			errs = append(errs, fmt.Errorf("%s of %s was %d MB behind its last restartpoint, %d of them after it opened, want %d",
				one.kind, one.server, one.restartpoint/megabyte, one.open/megabyte, crashBehind))
		}
	}
	if c.reads < readsPerCrash*len(c.list) || len(c.list) > 0 && c.fewest < readsPerCrash {
		errs = append(errs, fmt.Errorf("replicas answered %d reads under a token, %d of them between two crashes, want %d for each of %d crashes",
			c.reads, c.fewest, readsPerCrash, len(c.list)))
	}
	return errors.Join(errs...)
}
