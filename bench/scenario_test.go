package main

import (
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
	"github.com/gorm-ryw/gorm-ryw/token"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// after is some milliseconds past noon.
func after(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// logOf is a server's log with a sample each millisecond from noon on.
func logOf(port string, lsns ...uint64) *positions {
	p := &positions{port: port, news: make(chan struct{})}
	for i, lsn := range lsns {
		p.all = append(p.all, sample{begun: after(i), received: after(i), lsn: lsn})
	}
	return p
}

// trialOf is a trial of servers with these logs, all of which is measured.
func trialOf(logs ...*positions) *trial { return &trial{truth: &truth{logs: logs}, from: noon} }

func TestEndOfRecord(t *testing.T) {
	for lsn, want := range map[uint64]uint64{
		8192*3 + 24: 8192 * 3, 8192*3 + 25: 8192*3 + 25, 16<<20 + 40: 16 << 20, 8192*3 + 40: 8192*3 + 40,
	} {
		if have := endOfRecord(lsn); have != want {
			t.Errorf("%d: have %d, want %d", lsn, have, want)
		}
	}
}

func TestWhenAServerReachedAPosition(t *testing.T) {
	p := logOf("1", 10, 20, 0, 30) // for one millisecond it did not answer
	if at, ok := p.reached(20, noon); !ok || !at.Equal(after(1)) {
		t.Errorf("reached: have %v, %v", at, ok)
	}
	if at, ok := p.reached(20, after(2)); !ok || !at.Equal(after(3)) {
		t.Errorf("reached again: have %v, %v", at, ok)
	}
	if _, ok := p.reached(31, noon); ok {
		t.Error("reached what it never had")
	}
	if at, ok := logOf("0", 10, 20, 20, 30).passed(20); !ok || !at.Equal(after(3)) {
		t.Errorf("passed: have %v, %v", at, ok)
	}
	if s, _, ok := p.find(after(1).Add(1)); !ok || s.alive() || !s.begun.Equal(after(2)) {
		t.Errorf("find: have %v, %v", s, ok)
	}
}

// A replica that is as far behind as it is now gets to what was written as much later.
func TestEstimateIsTheLag(t *testing.T) {
	tr := trialOf(logOf("0", 10, 20, 30, 40, 50), logOf("1", 10, 10, 10, 10, 10))
	if have := tr.estimate(after(4), 50); have != 3*time.Millisecond {
		t.Errorf("have %s, want 3ms", have) // left 10 at 1 ms, was at 50 at 4 ms
	}
	if have := tr.estimate(after(4), 10); have > 0 {
		t.Errorf("have %s, want nothing to wait for", have)
	}
}

// The need of a read follows from what its session did: here it wrote up to 30, which
// the first replica has from 4 ms on and the second never.
func TestJudge(t *testing.T) {
	tr := trialOf(logOf("0", 10, 30, 30, 30, 30, 30, 30), logOf("1", 10, 10, 10, 10, 30, 30, 30), logOf("2", 10, 10, 10, 10, 10, 10, 10))
	read := func(ms int, a workload.Answer) workload.Done {
		return workload.Done{Began: after(ms), Ended: after(ms), Answer: a}
	}
	why := rywplugin.Explanation{Reason: policy.Behind, Waited: time.Millisecond, Want: token.Position{Timeline: 1, LSN: 40}}
	tr.ops[0] = []workload.Done{
		read(0, workload.Answer{Replica: true, Server: "2"}), // nothing is needed
		{Write: true, Began: noon, Ended: after(1)},
		read(2, workload.Answer{Detail: why}),                // 2 ms too early
		read(4, workload.Answer{}),                           // the primary, needlessly
		read(5, workload.Answer{Replica: true, Server: "1"}), // fresh
		{Err: errors.New("down"), Began: after(5), Ended: after(5)},
	}
	o := &outcome{perReplica: make([]int, 2), served: map[policy.Reason]*servedReads{}, missed: missed{}}
	tr.judgeSession(o, tr.ops[0])
	if o.reads != 4 || o.writes != 1 || o.errors != 1 || o.fromReplicas != 2 || o.fresh != 3 {
		t.Errorf("have %+v", o)
	}
	if o.perReplica[0] != 1 || o.perReplica[1] != 1 || o.balance() != 0.5 || o.share() != 0.5 || o.could() != 0.75 {
		t.Errorf("have %v, busier %v, share %v, could %v", o.perReplica, o.balance(), o.share(), o.could())
	}
	early := o.missed[missedKind{why: policy.Behind, fresh: 2, fits: true}]
	needless := o.missed[missedKind{fresh: 0, fits: true}]
	if len(o.missed) != 2 || early == nil || early.waited != time.Millisecond || early.own != 0 || needless == nil || needless.reads != 1 {
		t.Errorf("missed: have %+v", o.missed)
	}
	var b strings.Builder
	o.missed.print(&b, o.reads)
	if !strings.Contains(b.String(), "replicas are behind") || strings.Count(b.String(), "\n") != 3 {
		t.Errorf("have %s", b.String())
	}
}

// A paused replica that is to be waited for longer than the cap is not missed.
func TestNotMissed(t *testing.T) {
	m := missed{}
	m.add(rywplugin.Explanation{}, time.Second, time.Second, 0)
	m.add(rywplugin.Explanation{}, time.Millisecond, time.Millisecond, time.Second)
	m.add(rywplugin.Explanation{}, never, never, 0)
	for k := range m {
		if k.fits {
			t.Errorf("have %+v as missed", k)
		}
	}
}

func TestExtraStatements(t *testing.T) {
	o := &outcome{reads: 100, writes: 10, sent: []sent{{statements: 30 + 12, questions: 12}, {statements: 100 + 8, questions: 8}}}
	if o.extra() != 0.1 || o.extraAll() != 0.2 || o.questionsOfPrimary() != 1.2 {
		t.Errorf("have %v, %v, %v, want 0.1, 0.2, 1.2", o.extra(), o.extraAll(), o.questionsOfPrimary())
	}
	o.sent[0] = sent{statements: 30 + 5, questions: 5} // commits that shared a query save nothing for reads
	if o.extra() != 0.08 {
		t.Errorf("have %v, want 0.08", o.extra())
	}
}

func TestTapCountsStatements(t *testing.T) {
	tp := &tap{}
	call := func(oid uint32) []byte { return append(binary.BigEndian.AppendUint32(nil, oid), 0, 0) }
	for _, m := range []struct {
		kind    byte
		payload []byte
	}{
		{'P', []byte("select 1")},
		{'B', nil},
		{'E', nil},
		{'S', nil},             // one
		{'Q', []byte("begin")}, // two
		{'Q', []byte("select pg_last_wal_replay_lsn()")}, // a question
		{'F', call(3810)},
		{'F', call(oidReplayLSN)},
		{'F', call(3442)}, // one more
		{'F', call(oidInsertLSN)},
		{'F', nil},
		{'P', []byte("s1\x00select pg_current_wal_insert_lsn()\x00")},
		{'B', []byte("\x00s1\x00")},
		{'E', nil},
		{'P', []byte("s2\x00select 1\x00")},
		{'B', []byte("s1\x00s2\x00")},
		{'E', nil},
	} {
		if tp.look(m.kind, m.payload) {
			t.Fatal("cut")
		}
	}
	if tp.statements.Load() != 7 || tp.questions.Load() != 4 {
		t.Errorf("have %d statements, %d questions, want 7, 4", tp.statements.Load(), tp.questions.Load())
	}
}

func TestScenariosLastWholePeriods(t *testing.T) {
	sc := scenario{period: 6 * time.Second}
	for d, want := range map[time.Duration]time.Duration{time.Second: 6 * time.Second, 6 * time.Second: 6 * time.Second, 7 * time.Second: 12 * time.Second} {
		if have := sc.lasting(d); have != want {
			t.Errorf("%s: have %s, want %s", d, have, want)
		}
	}
	if have := (scenario{}).lasting(time.Second); have != time.Second {
		t.Errorf("have %s", have)
	}
}

// Counting and judging hold on real servers: dbresolver sends nothing extra, and breaks
// read-your-writes where replicas lag; the oracle does not.
func TestRoutersOnRealServers(t *testing.T) {
	s, err := openSite(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, s.close)
	countsStatements(t, s)
	lagging := scenario{begin: func(context.Context, *site) error { s.lag(200 * time.Millisecond); return nil }}
	outs := map[string]*outcome{}
	for _, c := range contenders {
		if c.name != nameDBResolver && c.name != nameOracle {
			continue
		}
		if outs[c.name], err = s.try(t.Context(), lagging, c, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	plain, best := outs[nameDBResolver], outs[nameOracle]
	if len(plain.verdict.ReadYourWrites) == 0 || plain.share() != 1 || plain.could() == 1 {
		t.Errorf("dbresolver: share %v, could %v, %s", plain.share(), plain.could(), plain.verdict)
	}
	if !best.verdict.Ok() || best.share() == 1 || best.errors > 0 {
		t.Errorf("oracle: share %v, %d errors, %s", best.share(), best.errors, best.verdict)
	}
}

// countsStatements has dbresolver do what is known to be so many statements.
func countsStatements(t *testing.T, s *site) {
	t.Helper()
	key, err := s.rows(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := openDBResolver(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closing(t, r.close)
	both := func(n int) {
		for range n {
			_, err := r.Write(t.Context(), "", key)
			_, err2 := r.Read(t.Context(), "", key)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
		}
	}
	both(10) // opens connections
	const n = 50
	before := s.traffic()
	both(n)
	have := int64(0)
	for i, after := range s.traffic() {
		have += after.minus(before[i]).statements
	}
	if more := have - 4*n; more < 0 || more > 3 { // database/sql pings what was idle for a second
		t.Errorf("have %d statements for %d writes and reads, want %d", have, n, 4*n)
	}
}

func TestDrawing(t *testing.T) {
	c, model := curve{name: "a < b"}, curve{name: "model", model: true}
	for _, x := range []float64{1, 10, 1000} {
		c.add(x, 2*x)
		model.add(x, 0) // is drawn at the bottom
	}
	text := draw([]panel{{"Title", "x", "y", []curve{c, model}}, {"Other", "x", "y", []curve{c}}})
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	for what, want := range map[string]int{"<circle": 6, "<polyline": 3, "stroke-dasharray": 1, "NaN": 0, "Inf": 0} {
		if have := strings.Count(text, what); have != want {
			t.Errorf("%s: have %d, want %d", what, have, want)
		}
	}
	s := scaleOf([]float64{1, 1000}, 0, 300)
	if s.at(10) != 100 || s.at(1000) != 300 {
		t.Errorf("scale: have %v and %v", s.at(10), s.at(1000))
	}
}
