package policy

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// fresh are requests that some replica can serve at once.
func fresh(r *rig) map[string]*Request {
	mixed := session.New(token.FromLSN(850))
	mixed.Advance(key, at(1, 900), later(), true)
	read := session.New()
	read.ReadNode(key, r.node(0).State().Incarnation, later())
	return map[string]*Request{
		"stale ok":     {Set: r.set, Level: StaleOK},
		"strong":       {Set: r.set, Level: Strong},
		"empty":        r.read(session.New()),
		"token":        r.read(wrote(900)),
		"two sessions": {Set: r.set, Level: ReadYourWrites, Sessions: []*session.Session{wrote(900), mixed}},
		"same node":    r.read(read),
	}
}

// The decision is on the path of every read; with a fresh replica it must cost no
// more than dbresolver's own, which allocates nothing.
func TestDecideDoesNotAllocate(t *testing.T) {
	for _, n := range []int{2, 64} {
		positions := make([]uint64, n)
		for i := range positions {
			positions[i] = 950
		}
		r := newRig(t, Settings{MaxTokenAge: DefaultMaxTokenAge, Wait: DefaultWait}, positions...)
		for name, q := range fresh(r) {
			t.Run(fmt.Sprintf("%d replicas, %s", n, name), func(t *testing.T) {
				ctx := context.Background()
				template := *q
				template.Sessions = slices.Clone(q.Sessions)
				var d Decision
				allocs := testing.AllocsPerRun(500, func() {
					q.Reset()
					q.Set, q.Level = template.Set, template.Level
					q.Sessions = append(q.Sessions, template.Sessions...)
					d = r.router.Decide(ctx, q)
				})
				if q.Level != Strong && d.Replica == nil {
					t.Fatalf("have %s, want a replica", r.show(d))
				}
				if allocs != 0 {
					t.Errorf("have %v allocations, want 0", allocs)
				}
			})
		}
		r.group.Close()
	}
}
