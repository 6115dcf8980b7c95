package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// split is a time during which two servers took writes.
type split struct {
	from, to  int64 // of the history's clock
	promotion history.Promotion
	// strays are the writes that the old primary took and the new one has not.
	strays map[stray]bool
}

// stray is a write: a version of a key, by its number.
type stray struct{ key, version int64 }

// splitBrain promotes a standby while the primary lives on. Whoever goes by the
// moving address, and every standby, is led to the new one; who has a list of all
// servers meets both, until the old primary is ended.
func (d *director) splitBrain(ctx context.Context, st *Step, old *rywtest.Server, undo func(context.Context) error) error {
	for _, p := range d.site.upstreamsOf(d.standbys()...) {
		p.Partition() // or some would have what the new primary lacks
	}
	if !st.Lossy {
		for _, p := range d.site.primaryLinks() {
			p.Partition()
		}
		pause(ctx, answerTime)
	}
	since, from := time.Now(), d.rec.Now()
	return d.inTurn(ctx, []phase{
		{"another is promoted", func(ctx context.Context) error { return d.promote(ctx, d.standbys(), nil) }},
		{"what hindered is undone", undo},
		{"the others follow", func(ctx context.Context) error { return d.followAll(ctx, old) }},
		{"both take writes", func(ctx context.Context) error { pause(ctx, st.Hold); return nil }},
		{"the old one is ended", func(ctx context.Context) error { return d.endSplit(ctx, old, from, since) }},
	})
}

// oldReturns lets the primary die and, when another one is there, come back as what
// it was.
func (d *director) oldReturns(ctx context.Context, st *Step, old *rywtest.Server, undo func(context.Context) error) error {
	if err := d.plain(ctx, st, old, undo); err != nil {
		return err
	}
	if !st.Lossy {
		d.site.clients[old].Partition()
	}
	since, from := time.Now(), d.rec.Now()
	return d.inTurn(ctx, []phase{
		{"the old one comes back", old.Start},
		{"both take writes", func(ctx context.Context) error { pause(ctx, st.Hold); return nil }},
		{"the old one is ended", func(ctx context.Context) error { return d.endSplit(ctx, old, from, since) }},
	})
}

// endSplit cuts the old primary's clients off, notes what it took from them, and
// kills it.
func (d *director) endSplit(ctx context.Context, old *rywtest.Server, from int64, since time.Time) error {
	links := d.site.clients[old]
	links.Partition()
	took, err := taken(ctx, old, since)
	if err != nil {
		return err
	}
	has, err := taken(ctx, d.site.Primary(), since)
	if err != nil {
		return err
	}
	if err := old.Kill(ctx); err != nil {
		return err
	}
	links.CutAll()
	links.Heal()
	d.splits = append(d.splits, split{from: from, to: d.rec.Now(), promotion: d.lastPromotion(), strays: without(took, has)})
	return nil
}

// without returns what is in took and not in has.
func without(took, has []stray) map[stray]bool {
	left := map[stray]bool{}
	for _, w := range took {
		left[w] = true
	}
	for _, w := range has {
		delete(left, w)
	}
	return left
}

// taken are the writes that a server has taken from shortly before some time on.
func taken(ctx context.Context, s *rywtest.Server, since time.Time) ([]stray, error) {
	const slack = time.Second
	list, err := ask[[][2]int64](ctx, s, fmt.Sprintf(
		"select coalesce(json_agg(array[id, v]), '[]') from taken where at > to_timestamp(%d)", since.Add(-slack).Unix()))
	var all []stray
	for _, w := range list {
		all = append(all, stray{w[0], w[1]})
	}
	return all, err
}

// diverge is a failover in which one standby has received more than the one that is
// promoted, and stays on the old timeline until it is rebuilt.
func (d *director) diverge(ctx context.Context, st *Step, old *rywtest.Server, undo func(context.Context) error) error {
	standbys := d.standbys()
	ahead := standbys[st.Standby%len(standbys)]
	heirs := except(standbys, ahead)
	return d.inTurn(ctx, []phase{
		{"the primary is lost", func(ctx context.Context) error { return d.lose(ctx, st, old, heirs) }},
		{"another is promoted", func(ctx context.Context) error { return d.promote(ctx, heirs, ahead) }},
		{"what hindered is undone", undo},
		{"the others follow", func(ctx context.Context) error { return d.followAll(ctx, old, ahead) }},
		{"one stays behind", func(ctx context.Context) error { pause(ctx, st.Hold); return nil }},
		{"that one is rebuilt", func(ctx context.Context) error { return d.giveIn(ctx, st, ahead) }},
	})
}

// giveIn has a standby that stayed on the old timeline go over to the new one. It
// cannot by itself if it has what is lost.
func (d *director) giveIn(ctx context.Context, st *Step, s *rywtest.Server) error {
	link := d.site.upstreams[s]
	link.SetTarget(addr(d.site.Primary()))
	link.CutAll()
	if !st.Lossy {
		return d.settle(ctx, s)
	}
	have, err := received(ctx, s)
	if err != nil {
		return err
	}
	if history.LSN(have) > d.lastPromotion().SwitchPoint {
		d.diverged++
	}
	return until(ctx, func() (bool, error) { return true, d.reattach(ctx, s) })
}
