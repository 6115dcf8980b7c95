package rywpgx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"gorm.io/gorm"
)

// A step is one message of a write, cut in one way.
type step struct {
	write string
	fault fault
	// outcome is what is reported; none says that nothing is, or that the write is
	// tried again on another connection and reported as if nothing had been.
	outcome rywpgx.Outcome
	none    bool
	retried bool
	// fails says that the write returns an error, stays that it took effect.
	fails, stays bool
}

func (s step) String() string {
	when := fmt.Sprintf("after %d answers", s.fault.ready)
	if s.fault.deaf {
		when += " nothing is heard"
	}
	if s.fault.unsent {
		when = "before it is sent"
	}
	return fmt.Sprintf("%s: %s, %s", s.write, s.fault.text, when)
}

var steps = []step{
	{write: "Transaction", fault: fault{text: "begin", unsent: true}, none: true, fails: true},
	{write: "Transaction", fault: fault{text: "begin"}, none: true, fails: true},
	{write: "Transaction", fault: fault{text: "insert", unsent: true}, outcome: rywpgx.Undone, fails: true},
	{write: "Transaction", fault: fault{text: "insert"}, outcome: rywpgx.Undone, fails: true},
	{write: "Transaction", fault: fault{text: "commit", unsent: true}, outcome: rywpgx.Undone, fails: true},
	{write: "Transaction", fault: fault{text: "commit"}, outcome: rywpgx.Indeterminate, fails: true, stays: true},
	{write: "Transaction", fault: fault{text: "commit", ready: 1}, outcome: rywpgx.Committed, stays: true},

	{write: "Exec", fault: fault{text: "insert", unsent: true}, retried: true, outcome: rywpgx.Committed, stays: true},
	{write: "Exec", fault: fault{text: "insert"}, outcome: rywpgx.Indeterminate, fails: true, stays: true},
	{write: "Exec", fault: fault{text: "insert", ready: 1}, outcome: rywpgx.Committed, stays: true},

	{write: "Exec", fault: fault{text: "insert", ready: 1, deaf: true}, outcome: rywpgx.Committed, stays: true},

	{write: "Raw returning", fault: fault{text: "insert", unsent: true}, retried: true, outcome: rywpgx.Committed, stays: true},
	{write: "Raw returning", fault: fault{text: "insert"}, outcome: rywpgx.Indeterminate, fails: true, stays: true},
	{write: "Raw returning", fault: fault{text: "insert", ready: 1}, outcome: rywpgx.Committed, stays: true},

	{write: "several statements", fault: fault{text: "insert", ready: 1}, outcome: rywpgx.Committed, stays: true},
	{write: "several statements", fault: fault{text: "insert"}, outcome: rywpgx.Indeterminate, fails: true, stays: true},
}

// The plain driver is what is compared with: the same cut gives the same error and
// the same row, and the next statement works.
func TestCuts(t *testing.T) {
	for _, s := range steps {
		t.Run(s.String(), func(t *testing.T) {
			// The simple protocol has the text in the packet that executes it.
			plain := settings{simple: true, conns: 1, wire: &wire{}}
			ours, h := plain, newHooks()
			ours.wire = &wire{}
			theirs, mine := table(t), table(t)
			_, theirErr := s.run(t, plain.wire, plain.plain(t), theirs)
			w := &who{}
			tries, ourErr := s.run(t, ours.wire, ours.ours(t, h).WithContext(observed(t.Context(), w)), mine)
			if tries > 1 {
				t.Error("a connection that was known to be lost was used again")
			}
			if have, want := fmt.Sprint(ourErr), fmt.Sprint(theirErr); have != want || (ourErr != nil) != s.fails {
				t.Errorf("error: have %s, want %s", have, want)
			}
			if have, want := count(t, mine), count(t, theirs); have != want || (have == 1) != s.stays {
				t.Errorf("rows: have %d, want %d", have, want)
			}
			s.judge(t, h.take())
		})
	}
}

// run does the write that is cut, and one behind it, which it tries again: pgx
// does not always know that a connection is gone.
func (s step) run(t *testing.T, w *wire, db *gorm.DB, tab string) (tries int, err error) {
	t.Helper()
	must(t, db.Exec("select 1").Error)
	w.cut(s.fault)
	err = writes[s.write](db, tab, 1)
	if w.pending() {
		t.Error("nothing was cut")
	}
	for {
		tries++
		behind := writes["Exec"](db, tab, 1+tries)
		if behind == nil {
			return tries, err
		}
		if tries == 3 {
			t.Fatal(behind)
		}
	}
}

func (s step) judge(t *testing.T, events []event) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("nothing was reported, not even of the write behind")
	}
	placed(t, only(t, events[len(events)-1:], rywpgx.Committed))
	events = events[:len(events)-1]
	if s.none {
		if len(events) > 0 {
			t.Errorf("have %v, want nothing", events)
		}
		return
	}
	e := only(t, events, s.outcome)
	if e.Placed() != s.retried {
		t.Errorf("placed: have %v, want %v", e, s.retried)
	}
	if e.Err == nil && !s.retried {
		t.Errorf("no reason in %v", e)
	}
}

// count says whether the row of the write is there.
func count(t *testing.T, tab string) (n int) {
	t.Helper()
	conn, err := cluster.Primary().Conn(t.Context())
	must(t, err)
	defer conn.Close(context.Background())
	must(t, conn.QueryRow(t.Context(), "select count(*) from "+tab+" where v = 1").Scan(&n))
	return n
}

// An answer that does not come in time is not waited for, and when it does come it
// is not taken for another's.
func TestLatePosition(t *testing.T) {
	for _, write := range []string{"Exec", "Transaction"} {
		t.Run(write, func(t *testing.T) {
			s, h, tab := settings{simple: true, conns: 1, wire: &wire{}}, newHooks(), table(t)
			db := s.ours(t, h).WithContext(observed(t.Context(), &who{floor: true}))
			must(t, db.Exec("select 1").Error)
			h.take()
			opened := s.wire.opened()
			silent := make(chan struct{})
			text := map[string]string{"Exec": "insert", "Transaction": "commit"}[write]
			s.wire.cut(fault{text: text, ready: 1, silent: silent})
			start := time.Now()
			must(t, writes[write](db, tab, 1))
			took := time.Since(start)
			if e := only(t, h.take(), rywpgx.Committed); e.Placed() || e.Err == nil {
				t.Errorf("have %v, want no position and why", e)
			}
			if took < rywpgx.DefaultCaptureTimeout || took > 4*rywpgx.DefaultCaptureTimeout {
				t.Errorf("took %s, want about %s", took, rywpgx.DefaultCaptureTimeout)
			}
			close(silent)
			must(t, settings{}.plain(t).Exec("insert into "+tab+" (v) values (7)").Error)
			var n int
			now := position(t)
			must(t, db.Raw("select count(*) from "+tab).Scan(&n).Error)
			if e := only(t, h.take(), rywpgx.Read); n != 2 || placed(t, e).Compare(now) < 0 {
				t.Errorf("have %d rows and %v, want 2 and at least %s, not the late position", n, e, now)
			}
			must(t, writes["Exec"](db, tab, 2))
			placed(t, only(t, h.take(), rywpgx.Committed))
			if s.wire.opened() != opened {
				t.Error("the connection was not kept")
			}
		})
	}
}
