package suite_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// way is a call of GORM's as the document's row of the same name has it. It
// reads or it writes.
type way struct {
	// read makes the call and returns who answered, and with which version.
	read func(r *run) ([]seenV, error)
	// write makes the call, which is to change the item r.id.
	write func(r *run) error
	// done is the SQL condition, on the item of number ?, that the write has
	// been made. Empty: version 2.
	done string
	// open starts the application; nil: newApp.
	open func(ctx context.Context, opts ...appOption) *app
	// plain starts the control; nil: newPlain.
	plain func(opts ...appOption) *gorm.DB
	// unprepared says that the row is about handles without PrepareStmt.
	unprepared bool
}

// seenV is a version and who answered.
type seenV struct {
	V       int64
	Replica bool
}

// decode reads a code: thousands tell the server, the rest is the version.
func decode(code int64) seenV { return seenV{V: code % 1000, Replica: code/1000 == 1} }

// run is one use of a road.
type run struct {
	ctx    context.Context
	db     *gorm.DB            // the handle to be used: with context and hint
	hints  []clause.Expression // the hint again, for generics
	scopes []scopes.Scope
	id     int64
	app    *gorm.DB // the handle without anything
}

// row is a row of the document.
type row struct {
	section                       string
	call                          string
	byDefault, session, stale, in string
	plain                         string
}

var roadHeader = []string{"call", "default", "under a session", "under StaleOK", "in a transaction", "dbresolver alone"}

// roadRows reads the tables of the document.
func roadRows() (rows []row, err error) {
	content, err := os.ReadFile("../docs/roads.md")
	if err != nil {
		return nil, err
	}
	var section string
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "## "); ok {
			section = h
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if section == "" || slices.Equal(cells, roadHeader) {
			continue // what the words mean
		}
		if len(cells) != len(roadHeader) {
			return nil, fmt.Errorf("docs/roads.md: have %d cells in %q, want %d", len(cells), line, len(roadHeader))
		}
		rows = append(rows, row{section, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
	}
	return rows, nil
}

// ways has every call, by the first cell of its row.
func ways() map[string]way {
	all := map[string]way{}
	for _, some := range []map[string]way{readRoads, rawRoads, primaryRoads, oddRoads, lookupRoads, readOnlyRoads, writeRoads, rawWriteRoads, txRoads} {
		maps.Copy(all, some)
	}
	return all
}

var _ = Describe("Every road through GORM", func() {
	rows, err := roadRows()
	known := ways()

	It("is a row of docs/roads.md, and every row is a road", func() {
		Expect(err).NotTo(HaveOccurred())
		var documented []string
		for _, r := range rows {
			documented = append(documented, r.call)
		}
		Expect(documented).To(ConsistOf(slices.Collect(maps.Keys(known))))
	})

	for mode, option := range modes {
		Context(mode, func() {
			for _, r := range rows {
				w, ok := known[r.call]
				if !ok || w.unprepared && mode == "with prepared statements" {
					continue
				}
				It("goes where the document says: "+r.call, func(ctx SpecContext) {
					w.check(ctx, r, option)
				})
			}
		})
	}

	Context("on dbresolver alone", func() {
		for _, r := range rows {
			w, ok := known[r.call]
			if !ok || r.plain == none {
				continue
			}
			It("goes where the document says: "+r.call, func(ctx SpecContext) {
				w.checkPlain(ctx, r.plain)
			})
		}
	})
})

func (w way) check(ctx context.Context, r row, option appOption) {
	GinkgoHelper()
	makeRoadTables(ctx)
	open := newApp
	if w.open != nil {
		open = w.open
	}
	a := open(ctx, option)
	if w.write != nil {
		w.checkWrite(ctx, a, r)
		return
	}
	w.checkRead(ctx, a, r)
}
