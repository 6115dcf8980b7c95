//go:build linux || darwin

package rywtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func TestPauseAndResumeReplay(t *testing.T) {
	c := start(t, rywtest.Options{})
	p, r := c.Primary(), c.Replica(0)
	must(t, r.PauseReplay(within(t, patience)))
	insert(t, p, 1)
	want, err := p.Position(within(t, patience))
	must(t, err)
	must(t, c.Replica(1).WaitCaughtUp(within(t, patience), want))
	at, err := r.Position(within(t, patience))
	must(t, err)
	if at >= want {
		t.Errorf("a paused replica is at %v, want less than %v", at, want)
	}
	wantTimeout(t, r.WaitCaughtUp(within(t, brief), want), "replica1: ", fmt.Sprintf("at %v, want %v", at, want))
	wantTimeout(t, c.WaitReplicated(within(t, brief)), "replica1: ", fmt.Sprintf("at %v, want %v", at, want))
	wantRows(t, r, "")
	must(t, r.ResumeReplay(within(t, patience)))
	must(t, r.WaitCaughtUp(within(t, patience), want))
	wantRows(t, r, "1")
	wantError(t, p.PauseReplay(within(t, patience)), rywtest.ErrNotStandby, "primary: pause replay")
	wantError(t, p.ResumeReplay(within(t, patience)), rywtest.ErrNotStandby)
}

func TestApplyDelay(t *testing.T) {
	c := start(t, rywtest.Options{})
	p, r := c.Primary(), c.Replica(0)
	must(t, r.SetApplyDelay(within(t, patience), time.Hour))
	insert(t, p, 1)
	must(t, c.Replica(1).WaitCaughtUp(within(t, patience), position(t, p)))
	wantTimeout(t, r.WaitCaughtUp(within(t, brief), position(t, p)))
	wantRows(t, r, "")
	must(t, r.SetApplyDelay(within(t, patience), 0))
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, r, "1")

	const delay = 300 * time.Millisecond
	must(t, r.SetApplyDelay(within(t, patience), delay))
	begin := time.Now()
	insert(t, p, 2)
	must(t, c.WaitReplicated(within(t, patience)))
	if took := time.Since(begin); took < delay {
		t.Errorf("a commit was applied after %v, want %v or more", took, delay)
	}
	must(t, r.SetApplyDelay(within(t, patience), 1)) // a nanosecond
	if have := text(t, r, "current_setting('recovery_min_apply_delay')"); have != "1ms" {
		t.Errorf("have a delay of %s, want it rounded up to 1ms", have)
	}
	if err := r.SetApplyDelay(within(t, patience), -1); err == nil {
		t.Error("a negative delay was accepted")
	}
	wantError(t, p.SetApplyDelay(within(t, patience), delay), rywtest.ErrNotStandby)
}

func position(t *testing.T, s *rywtest.Server) rywtest.LSN {
	t.Helper()
	lsn, err := s.Position(within(t, patience))
	must(t, err)
	return lsn
}

// The primary's insert position lies behind the header of the next WAL page when a
// record ends at the edge of a page; an idle replica never gets there. The test
// writes records up to such an edge.
func TestWaitAtThePageEdge(t *testing.T) {
	c := start(t, rywtest.Options{Settings: map[string]string{"autovacuum": "off"}})
	p := c.Primary()
	w := walWriter{t: t, conn: connect(t, p)}
	if !w.fillPage() {
		t.Fatalf("no record ended at the edge of a page: at %d", w.at()%walPage)
	}
	must(t, c.WaitReplicated(within(t, patience)))
	must(t, c.Replica(0).WaitCaughtUp(within(t, patience), rywtest.LSN(w.at())))
	if have, want := position(t, p), rywtest.LSN(w.at()-24); have != want {
		t.Errorf("have position %v, want %v", have, want)
	}
}

const walPage = 8192

// walWriter writes WAL records of chosen lengths.
type walWriter struct {
	t    *testing.T
	conn *pgx.Conn
}

func (w walWriter) at() (n int) {
	text, err := ask(within(w.t, patience), w.conn, "select pg_current_wal_insert_lsn() - '0/0'")
	must(w.t, err)
	_, err = fmt.Sscan(text, &n)
	must(w.t, err)
	return n
}

func (w walWriter) emit(length int) {
	_, err := w.conn.Exec(within(w.t, patience), "select pg_logical_emit_message(false, 'x', repeat('x', $1))", length)
	must(w.t, err)
}

// head is what a record takes beside its content. A page's header, or a record of
// the server's own, makes it look longer now and then.
func (w walWriter) head() int {
	head := walPage
	for range 3 {
		before := w.at()
		w.emit(8)
		head = min(head, w.at()-before-8)
	}
	return head
}

// fillPage makes a record end at the edge of a page, in several tries, because the
// server may write records of its own in between.
func (w walWriter) fillPage() bool {
	head := w.head()
	for range 100 {
		switch rest := walPage - w.at()%walPage; {
		case rest > 4*head: // fill most of the page
			w.emit((rest - 3*head) / 8 * 8)
		case rest >= head+8:
			w.emit(rest - head)
		default: // go beyond the edge
			w.emit(8)
		}
		if w.at()%walPage == 24 {
			return true
		}
	}
	return false
}

func TestPromoteAndFollow(t *testing.T) {
	c := start(t, rywtest.Options{})
	old, r1, r2 := c.Primary(), c.Replica(0), c.Replica(1)
	insert(t, old, 1)
	must(t, c.WaitReplicated(within(t, patience)))
	must(t, r1.Stop(within(t, patience)))
	must(t, r2.Stop(within(t, patience)))
	insert(t, old, 2) // will be lost
	must(t, old.Kill(within(t, patience)))
	must(t, r1.Start(within(t, patience)))
	must(t, r2.Start(within(t, patience)))
	must(t, r1.Promote(within(t, patience)))
	if c.Primary() != r1 || c.Replica(0) != r1 || c.Servers()[0] != old {
		t.Error("want the promoted server as primary, under its old index")
	}
	wantError(t, r1.Promote(within(t, patience)), rywtest.ErrNotStandby, "replica1: promote")
	insert(t, r1, 3)
	wantRows(t, r1, "1 3")

	must(t, r2.Follow(within(t, patience), r1))
	wantRows(t, r2, "1 3")
	dir := text(t, r1, "regexp_replace(current_setting('data_directory'), 'replica1$', 'primary')")
	before, _ := os.Stat(dir) // nil in a container
	must(t, old.Follow(within(t, patience), r1))
	wantRows(t, old, "1 3")
	if after, err := os.Stat(dir); !onDocker() && (err != nil || !os.SameFile(before, after)) {
		t.Errorf("the old primary was copied (%v), want it rewound", err)
	}
	insert(t, r1, 4)
	must(t, c.WaitReplicated(within(t, patience)))
	wantRows(t, old, "1 3 4")
	for _, s := range []*rywtest.Server{old, r2} {
		const timeline = "select received_tli from pg_stat_wal_receiver"
		if have := text(t, s, timeline); have != "2" {
			t.Errorf("%s: have timeline %s, want 2", s.Name(), have)
		}
	}
	if err := r1.Follow(within(t, patience), r1); err == nil {
		t.Error("a server followed itself")
	}
}

// Rewinding is not possible without the control file: the server is copied.
func TestFollowCopiesWhatCannotBeRewound(t *testing.T) {
	localOnly(t, "it reaches into the data directory")
	c := start(t, rywtest.Options{Replicas: 1})
	p, r := c.Primary(), c.Replica(0)
	dir := text(t, r, "current_setting('data_directory')")
	must(t, r.SetApplyDelay(within(t, patience), time.Hour))
	insert(t, p, 1)
	must(t, r.Stop(within(t, patience)))
	must(t, os.Remove(filepath.Join(dir, "global", "pg_control")))
	must(t, r.Follow(within(t, patience), p))
	wantRows(t, r, "1")
}

// A standby whose primary cannot be asked stays as it is.
func TestFollowNeedsTheOtherServer(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1})
	p, r := c.Primary(), c.Replica(0)
	insert(t, p, 1)
	must(t, c.WaitReplicated(within(t, patience)))
	must(t, p.Stop(within(t, patience)))
	if err := r.Follow(within(t, patience), p); err == nil {
		t.Fatal("a server followed one that is not running")
	}
	must(t, r.Start(within(t, patience)))
	wantRows(t, r, "1")
}
