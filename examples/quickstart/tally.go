package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
)

// tally counts reads by what they asked for, who answered and why.
type tally struct {
	mu   sync.Mutex // protects rows
	rows map[row]*count
}

type row struct{ asked, server, why string }

type count struct {
	replica      bool
	reads, stale int64
}

// underToken is what reads that carry a token ask for.
const underToken = "read your writes"

func newTally() *tally { return &tally{rows: map[row]*count{}} }

// count adds one read. A row that the server did not have at all tells nothing
// of its role; its reads are counted as a replica's, which only they can be.
func (t *tally) count(asked string, n note, why string, stale bool) {
	server := "replica " + n.Server
	switch {
	case n.Server == "":
		server, n.Replica = "replica (row missing)", true
	case !n.Replica:
		server = "primary " + n.Server
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.rows[row{asked, server, why}]
	if c == nil {
		c = &count{replica: n.Replica}
		t.rows[row{asked, server, why}] = c
	}
	c.reads++
	if stale {
		c.stale++
	}
}

func (t *tally) sum(asked string) (reads, replica, stale int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r, c := range t.rows {
		if r.asked == asked {
			reads += c.reads
			stale += c.stale
			if c.replica {
				replica += c.reads
			}
		}
	}
	return reads, replica, stale
}

func (t *tally) stale() int64 {
	_, _, stale := t.sum(underToken)
	return stale
}

func (t *tally) print(w io.Writer) {
	t.table(w)
	reads, replica, stale := t.sum(underToken)
	_, _, plain := t.sum("plain dbresolver")
	share := 0.0
	if reads > 0 {
		share = 100 * float64(replica) / float64(reads)
	}
	fmt.Fprintf(w, "\nquickstart: reads=%d from_replicas=%.1f%% stale=%d plain_dbresolver_stale=%d\n", reads, share, stale, plain)
}

func (t *tally) table(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []row
	for r := range t.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.asked, b.asked), cmp.Compare(a.server, b.server), cmp.Compare(a.why, b.why))
	})
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer tw.Flush()
	fmt.Fprintln(tw, "ASKED FOR\tANSWERED BY\tWHY\tREADS\tSTALE")
	for _, r := range rows {
		c := t.rows[r]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\n", r.asked, r.server, r.why, c.reads, c.stale)
	}
}
