package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// Crashes take the standbys in turn, and every kind as often as the others; some are
// of two standbys at once, some find workers frozen.
func TestCrashes(t *testing.T) {
	s, again := NewCrashes(4), NewCrashes(4)
	last, count := -1, map[Kind]int{}
	var pairs, frozen int
	for range 300 {
		st, same := s.Next(), again.Next()
		if st.String() != same.String() {
			t.Fatalf("have %q, then %q", st.String(), same.String())
		}
		for one := &st; one != nil; one = one.With {
			if !one.Kind.crashes() || one.Behind < 100 || one.Standby == last {
				t.Errorf("%s, behind standby %d", one, last)
			}
			last = one.Standby
		}
		count[st.Kind]++
		if st.With != nil {
			pairs++
		}
		if st.Frozen > 0 {
			frozen++
		}
	}
	if len(count) != 3 || count[KillReplica] != 100 || pairs < 30 || frozen < 100 {
		t.Errorf("have %v, %d pairs, %d with workers frozen", count, pairs, frozen)
	}
}

// crashed is a run of one crash after another, half a second long, with the same
// number of reads that replicas answered behind each.
func crashed(n, readsEach int, c crash) *outcome {
	r := &outcome{options: &Options{Mode: modeRYW}, result: history.Result{Reads: 1}, tally: Tally{Reasons: map[policy.Reason]int64{}}}
	for i := range n {
		c.from = int64(1+i) * int64(10*time.Second)
		c.step = 1 + i
		c.up = c.from + int64(time.Second/2)
		r.crashes = append(r.crashes, c)
		for k := range readsEach {
			r.replicaReads = append(r.replicaReads, c.from+int64(k))
		}
	}
	return r
}

func TestFiguresOfCrashes(t *testing.T) {
	far := crash{restartpoint: 120 * megabyte, open: 110 * megabyte}
	near := crash{restartpoint: 120 * megabyte, open: 99 * megabyte}
	for name, tc := range map[string]struct {
		outcome *outcome
		ok      bool
		says    string
	}{
		"enough":            {crashed(3, 1000, far), true, "crashes=3 frozen_across=0 wal_min=110MB replica_reads=3000 per_crash=1000 fewest_between=1000 racing=3000 stale=0"},
		"too few reads":     {crashed(3, 999, far), false, "replicas answered 2997 reads"},
		"too near":          {crashed(3, 1000, near), false, "99 of them after it opened"},
		"an ordinary run":   {crashed(0, 0, far), true, "torture: "},
		"no reads between":  {crashed(2, 0, far), false, "fewest_between=0"},
		"with a stale read": {stale(crashed(2, 1000, far)), false, "stale=1"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			tc.outcome.report(&b)
			if tc.outcome.ok() != tc.ok || !strings.Contains(b.String(), tc.says) {
				t.Errorf("ok: have %v, want %v and %q in\n%s", tc.outcome.ok(), tc.ok, tc.says, b.String())
			}
		})
	}
	two := crashed(2, 10, far)
	two.crashes[1].step = 1 // at the same time: no read is between them
	if c := two.figures(); c.fewest != 20 || c.reads != 20 {
		t.Errorf("have %d reads, at the fewest %d, want 20 and 20", c.reads, c.fewest)
	}
}

func stale(r *outcome) *outcome {
	op := &history.Op{Kind: history.Read, Key: keyName(1)}
	r.result.ReadYourWrites = []history.Violation{{Rule: history.RuleReadYourWrites, Op: op, Want: op}}
	return r
}

// A read that met its deadline because its worker was frozen is nobody's fault; one
// that would have met it awake is.
func TestOverslept(t *testing.T) {
	const second = int64(time.Second)
	r := &outcome{frozen: []frozen{
		{worker: "a", from: 10 * second, to: 14 * second},
		{worker: "a", from: 20 * second, to: 21 * second},
		{worker: "b", from: 0, to: 100 * second},
	}}
	for name, tc := range map[string]struct {
		f    Failure
		want bool
	}{
		"all along":       {Failure{worker: "a", Start: 9 * second, End: 14 * second, Class: classTimeout}, true},
		"for some time":   {Failure{worker: "a", Start: 17 * second, End: 22 * second, Class: classTimeout}, false},
		"not at all":      {Failure{worker: "a", Start: 30 * second, End: 35 * second, Class: classTimeout}, false},
		"another's":       {Failure{worker: "c", Start: 9 * second, End: 14 * second, Class: classTimeout}, false},
		"not a deadline":  {Failure{worker: "a", Start: 9 * second, End: 14 * second, Class: "other"}, false},
		"of a connection": {Failure{worker: "a", Start: 11 * second, End: 14 * second, Class: "connect: " + classTimeout}, true},
	} {
		if have := r.overslept(&tc.f); have != tc.want {
			t.Errorf("%s: have %v, want %v", name, have, tc.want)
		}
	}
}

// Workers that are frozen do nothing until they are thawed; two are left running.
func TestFreeze(t *testing.T) {
	d := &director{rec: history.NewRecorder("d"), crew: &crew{}}
	for _, name := range []string{"a", "b", "c"} {
		cmd := exec.CommandContext(t.Context(), "sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		d.crew.workers = append(d.crew.workers, &member{orders: Orders{Name: name}, cmd: cmd})
	}
	thaw := d.freeze(5, 3)
	for i, m := range d.crew.workers {
		if have, want := stopped(t, m), i == 2; have != want {
			t.Errorf("%s is frozen: have %v, want %v", m.orders.Name, have, want)
		}
	}
	thaw()
	if len(d.frozen) != 1 || d.frozen[0].worker != "c" || d.frozen[0].from > d.frozen[0].to {
		t.Errorf("have %+v, want one of c", d.frozen)
	}
	for _, m := range d.crew.workers {
		if stopped(t, m) {
			t.Errorf("%s is frozen", m.orders.Name)
		}
	}
}
