package history

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestRecorderRecordsWhatHappened(t *testing.T) {
	rec := NewRecorder("web-1")
	if err := rec.Initial("cart", 4); err != nil {
		t.Fatal(err)
	}
	alice, bob := rec.Session("alice"), rec.Session("bob")
	before := rec.Now()
	op := alice.Write("cart", VersionUnknown)
	op.End(Answer{Outcome: OK, Version: 5, Timeline: 1, Position: 0x3000})
	mark := alice.Mark().String()
	alice.Write("cart", 6).End(Answer{Outcome: Unknown})
	if err := bob.Receive(mark); err != nil {
		t.Fatal(err)
	}
	bob.Read("cart").End(Answer{Outcome: OK, Version: 5, Node: "r1", Role: Replica})
	bob.Read("cart")
	rec.Promotion(Promotion{OldTimeline: 1, NewTimeline: 2, SwitchPoint: 0x4000})

	h := rec.History()
	checkTimes(t, h, before, rec.Now())
	clock := h.Ops[0].Clock
	base := Op{Process: "web-1", Clock: clock}
	want := []Op{base, base, base, base, base}
	for i, o := range []Op{
		{Kind: Write, Session: "alice", Seq: 1, Key: "cart", Answer: Answer{Outcome: OK, Version: 5, Timeline: 1, Position: 0x3000}},
		{Kind: Write, Session: "alice", Seq: 2, Key: "cart", Answer: Answer{Outcome: Unknown, Version: 6}},
		{Kind: Receive, Session: "bob", Seq: 1, From: Mark{"alice", 1}},
		{Kind: Read, Session: "bob", Seq: 2, Key: "cart", Answer: Answer{Outcome: OK, Version: 5, Node: "r1", Role: Replica}},
		{Kind: Read, Session: "bob", Seq: 3, Key: "cart", Answer: Answer{Outcome: Unknown}},
	} {
		o.Process, o.Clock = base.Process, base.Clock
		want[i] = o
		h.Ops[i].Start, h.Ops[i].End = 0, 0
	}
	if !reflect.DeepEqual(h.Ops, want) || h.Initial["cart"] != 4 {
		t.Errorf("have\n%+v\nwant\n%+v", h.Ops, want)
	}
	if r := Check(rec.History(), Options{}); !r.Ok() {
		t.Error(r.String())
	}
}

func checkTimes(t *testing.T, h History, before, after int64) {
	t.Helper()
	last := before
	for i, op := range h.Ops {
		if open := i == len(h.Ops)-1; op.Start < last || (op.End < op.Start) != open {
			t.Errorf("%s: from %d to %d, after %d", op.Mark(), op.Start, op.End, last)
		}
		last = max(op.End, op.Start)
	}
	if p := h.Promotions[0]; p.At < last || p.At > after || p.Clock != h.Ops[0].Clock {
		t.Errorf("promotion at %d on %q, want between %d and %d", p.At, p.Clock, last, after)
	}
}

func TestRecorderRefusesMistakes(t *testing.T) {
	rec := NewRecorder("p")
	s := rec.Session("s")
	for _, mark := range []string{"", "alice", "@1", "alice@", "alice@-1", "alice@x"} {
		if err := s.Receive(mark); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("mark %q: have %v", mark, err)
		}
	}
	if n := len(rec.History().Ops); n != 0 {
		t.Errorf("have %d operations after refused receives", n)
	}
	if rec.Initial("k", 1) != nil || rec.Initial("k", 2) == nil {
		t.Error("a second initial version: accepted, or the first one refused")
	}
	op := s.Read("k")
	op.End(Answer{Outcome: Failed})
	defer func() {
		if recover() == nil {
			t.Error("ended twice without a panic")
		}
	}()
	op.End(Answer{Outcome: OK})
}

// A history taken while it is written does not share memory with what follows.
func TestHistoryIsACopy(t *testing.T) {
	rec := NewRecorder("p")
	op := rec.Session("s").Write("k", 1)
	early := rec.History()
	op.End(Answer{Outcome: OK})
	if !early.Ops[0].open() || rec.History().Ops[0].open() {
		t.Error("the copy changed, or the original did not")
	}
}

func TestRecorderIsConcurrencySafe(t *testing.T) {
	rec := NewRecorder("p")
	marks := make(chan string, 1000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				s := rec.Session(fmt.Sprint("s", i))
				s.Write(fmt.Sprint("k", i), int64(n+1)).End(Answer{Outcome: OK})
				select {
				case mark := <-marks:
					if err := s.Receive(mark); err != nil {
						t.Error(err)
					}
				default:
					marks <- s.Mark().String()
				}
				s.Read(fmt.Sprint("k", i)).End(Answer{Outcome: OK, Version: int64(n + 1)})
				if n%10 == 0 {
					rec.History()
				}
			}
		})
	}
	wg.Wait()
	r := Check(rec.History(), Options{})
	if !r.Ok() || r.Writes != 800 || r.Reads != 800 || r.Receives < 100 {
		t.Error(r.String())
	}
}

// Two recorders stand for two processes.
func TestClocksOfOneHostAgree(t *testing.T) {
	a, b := NewRecorder("a"), NewRecorder("b")
	if a.clock.domain != b.clock.domain {
		t.Skipf("this system has no clock that processes share: %q", a.clock.domain)
	}
	const tolerance = 50_000 // nanoseconds; the scheduler may get between the readings
	first, second, third := a.Now(), b.Now(), a.Now()
	if second < first-tolerance || second > third+tolerance {
		t.Errorf("have %d between %d and %d", second, first, third)
	}
}

func TestLocalClockNamesItsProcess(t *testing.T) {
	a, b := localClock("p"), localClock("q")
	if a.domain == b.domain || a.now() < 1 {
		t.Errorf("have %q and %q at %d", a.domain, b.domain, a.now())
	}
}
