package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
)

// missed are reads that the primary served, by why, and by when a replica could
// have.
type missed map[missedKind]*missedReads

type missedKind struct {
	why   policy.Reason // Undecided for routers that do not say
	fresh int           // index of freshWithin
	fits  bool          // the oracle would have waited, or need not have
}

type missedReads struct {
	reads   int
	waited  time.Duration // together
	own     int           // of them, by the router's own want a replica was fresh as soon
	sooner  time.Duration // by which the true need was fresh before the router's own, together
	unknown int           // reads without such a want
}

// freshWithin are the columns: how long after the read began some replica was fresh.
var freshWithin = []struct {
	name string
	d    time.Duration
}{
	{"at once", 0},
	{"1 ms", time.Millisecond},
	{"5 ms", 5 * time.Millisecond},
	{"20 ms", 20 * time.Millisecond},
	{"50 ms", waitCap},
	{"later", never},
}

func (m missed) add(why rywplugin.Explanation, in, own, estimate time.Duration) {
	k := missedKind{why: why.Reason, fits: in == 0 || in <= waitCap && estimate <= waitCap}
	for k.fresh = 0; in > freshWithin[k.fresh].d; k.fresh++ {
	}
	r := m[k]
	if r == nil {
		r = &missedReads{}
		m[k] = r
	}
	r.reads++
	r.waited += why.Waited
	switch {
	case why.Want.IsZero():
		r.unknown++
	case own == in:
		r.own++
	case own != never && in != never:
		r.sooner += own - in
	}
}

// printServed writes why replicas served, and what else was asked.
func (o *outcome) printServed(w io.Writer, name string) {
	fmt.Fprintf(w, "#   %s: position queries", name)
	for i, s := range o.sent {
		fmt.Fprintf(w, " %s %d,", []string{"primary", "replica"}[min(i, 1)], s.questions)
	}
	fmt.Fprintf(w, " reads of replicas")
	for _, why := range policy.Reasons() {
		if r := o.served[why]; r != nil {
			fmt.Fprintf(w, ", %d %q after %s", r.reads, why, (r.waited / time.Duration(r.reads)).Round(10*time.Microsecond))
		}
	}
	fmt.Fprintln(w, "; reads of the primary:")
}

// print writes the table: where the reads went that the oracle would have served by
// a replica, and then the others.
func (m missed) print(w io.Writer, reads int) {
	kinds := make([]missedKind, 0, len(m))
	for k := range m {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b missedKind) int {
		if a.fits != b.fits {
			return map[bool]int{true: -1, false: 1}[a.fits]
		}
		return cmp.Or(cmp.Compare(a.why, b.why), cmp.Compare(a.fresh, b.fresh))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#     oracle would\tfresh within\treason\treads\tof all\tmean wait\tsame by own want\town want later by")
	for _, k := range kinds {
		r := m[k]
		would := "primary"
		if k.fits {
			would = "replica"
		}
		late := time.Duration(0)
		if n := r.reads - r.own - r.unknown; n > 0 {
			late = r.sooner / time.Duration(n)
		}
		fmt.Fprintf(t, "#     %s\t%s\t%s\t%d\t%.2f %%\t%s\t%d\t%s\n", would, freshWithin[k.fresh].name, k.why, r.reads,
			100*part(r.reads, reads), (r.waited / time.Duration(r.reads)).Round(time.Microsecond), r.own, late.Round(10*time.Microsecond))
	}
	t.Flush()
}
