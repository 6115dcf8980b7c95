package rywprom

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/doctor"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/session"
)

// watched is a fleet that is looked at in every way there is.
type watched struct {
	*fleet
	page     http.Handler
	examined doctor.Options
	from     int // where the log of this step begins
	writer   *writer
}

// whoTakesWrites is a DSN for the primary among all servers.
func whoTakesWrites(c *rywtest.Cluster) string {
	var hosts, ports []string
	for _, s := range c.Servers() {
		hosts, ports = append(hosts, s.Host()), append(ports, fmt.Sprint(s.Port()))
	}
	return fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable connect_timeout=2 target_session_attrs=read-write",
		strings.Join(hosts, ","), strings.Join(ports, ","))
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	f := newFleetOf(t, 2, whoTakesWrites, func(c *rywplugin.Config) {
		c.Rotation = policy.Rotation{High: time.Second, Low: 500 * time.Millisecond, Settle: 100 * time.Millisecond, StuckAfter: time.Second}
	})
	w := &watched{fleet: f, page: f.ryw.Handler()}
	w.examined = doctor.Options{Primary: whoTakesWrites(f.cluster), Connections: 2}
	for _, r := range f.cluster.Replicas() {
		w.examined.Replicas = append(w.examined.Replicas, r.DSN())
	}
	w.writer = startWriter(f)
	return w
}

func address(s *rywtest.Server) string { return fmt.Sprintf("%s:%d", s.Host(), s.Port()) }

// node is a label.
func node(s *rywtest.Server) string { return fmt.Sprintf("node=%q", address(s)) }

// shown is a server on the page.
type shown struct {
	Name, State   string
	Primary       bool
	Paused, Stuck bool
	Gap           uint64 `json:"gap_bytes"`
}

// twin is a little of the page's JSON.
type twin struct {
	Nodes []shown
	All   struct{ Fallbacks int64 }
}

func (w *watched) looks() (p twin) {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/status.json", nil))
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// diagnosis is a little of the doctor's JSON.
type diagnosis struct {
	Failed   bool
	Findings []doctor.Finding
}

func (w *watched) examine(wait time.Duration) (d diagnosis) {
	w.t.Helper()
	o := w.examined
	o.Wait = wait
	r, err := doctor.Run(w.ctx, o)
	var b bytes.Buffer
	if err == nil {
		err = r.WriteJSON(&b)
	}
	if err == nil {
		err = json.Unmarshal(b.Bytes(), &d)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// finds reports whether there is a finding: level, server, check and a part of the text.
func (d *diagnosis) finds(f doctor.Finding) bool {
	for _, have := range d.Findings {
		if have.Level == f.Level && strings.HasPrefix(have.Server, f.Server+" ") && have.Check == f.Check && strings.Contains(have.Found, f.Found) {
			return true
		}
	}
	return false
}

// story is what is true, as each of the four has to tell it.
type story struct {
	metrics []func(samples) bool
	page    []shown // Gap of 1: any but none
	log     []string
	doctor  []doctor.Finding // all that fail, and some that do not
}

// step does something to the fleet. All four tell of it then.
func (w *watched) step(what string, do func() error, true story) {
	w.t.Helper()
	w.from = len(w.log.String())
	if err := do(); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	for i, ok := range true.metrics {
		w.eventually(fmt.Sprintf("%s: series %d", what, i), ok)
	}
	for _, want := range true.page {
		w.comes(func() (string, bool) { return w.showsServer(want) }, what, "page", want)
	}
	for _, line := range true.log {
		w.comes(func() (string, bool) {
			log := w.log.String()[w.from:]
			return log, strings.Contains(log, line)
		}, what, "log", line)
	}
	w.comes(func() (string, bool) { return w.diagnoses(true.doctor) }, what, "doctor", true.doctor)
}

// comes waits until it is so.
func (w *watched) comes(look func() (have string, ok bool), what, where string, want any) {
	w.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		have, ok := look()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: the %s: have %s, want %+v", what, where, have, want)
		}
	}
}

func (w *watched) showsServer(want shown) (have string, ok bool) {
	p := w.looks()
	for _, n := range p.Nodes {
		if want.Gap == 1 && n.Gap > 0 || want.Gap == 0 {
			n.Gap = want.Gap
		}
		if want.Primary {
			n.Name = want.Name // the first of those that it may be
		}
		if n == want {
			return "", true
		}
	}
	return fmt.Sprintf("%+v", p.Nodes), false
}

func (w *watched) diagnoses(want []doctor.Finding) (have string, ok bool) {
	failed, ok, wait := false, true, 10*time.Second
	for _, f := range want {
		if f.Level == doctor.Fail {
			failed, wait = true, 3*time.Second
		}
	}
	d := w.examine(wait)
	for _, f := range want {
		ok = ok && d.finds(f)
	}
	var told []string
	for _, f := range d.Findings {
		if f.Level == doctor.Fail || f.Check == "follow" {
			told = append(told, fmt.Sprintf("%s %s %s: %s", f.Level, f.Server, f.Check, f.Found))
		}
	}
	return strings.Join(told, "\n"), ok && d.Failed == failed
}

// writer writes and reads back all the while, as one session.
type writer struct {
	*fleet
	stop   chan struct{} // closed when it is to end
	done   sync.WaitGroup
	seen   atomic.Int64 // writes that were read back
	lost   int64        // reads that were explained as possibly lost
	wrong  []string
	closed sync.Once
}

func startWriter(f *fleet) *writer {
	w := &writer{fleet: f, stop: make(chan struct{})}
	w.done.Go(w.run)
	f.t.Cleanup(w.close)
	return w
}

// close ends the writer and waits for it. Idempotent.
func (w *writer) close() {
	w.closed.Do(func() { close(w.stop) })
	w.done.Wait()
}

func (w *writer) run() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := session.NewContext(context.WithoutCancel(w.ctx), session.New())
	for id := 1; ; id++ {
		select {
		case <-w.stop:
			return
		case <-tick.C:
			w.once(ctx, id)
		}
	}
}

func (w *writer) once(ctx context.Context, id int) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	db := w.db.WithContext(ctx)
	if db.Exec("insert into things values (?)", id).Error != nil {
		return // in a failover
	}
	var n int
	tx := db.Raw("select count(*) from things where id = ?", id).Scan(&n)
	e := rywplugin.Explain(tx)
	if e.PossiblyLost {
		w.lost++
	}
	switch {
	case tx.Error != nil:
	case n == 1:
		w.seen.Add(1)
	case !e.PossiblyLost:
		w.wrong = append(w.wrong, fmt.Sprintf("%d: %s", id, e))
	}
}

// goesOn waits until something was written and read back.
func (w *watched) goesOn() {
	w.t.Helper()
	n := w.writer.seen.Load()
	w.comes(func() (string, bool) { have := w.writer.seen.Load(); return fmt.Sprint(have), have > n+5 }, "the writer", "count", n+6)
}

func (w *watched) checkpoint(servers ...*rywtest.Server) error {
	for _, s := range servers {
		conn, err := s.Conn(w.ctx)
		if err != nil {
			return err
		}
		_, err = conn.Exec(w.ctx, "checkpoint")
		_ = conn.Close(w.ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// follow has servers follow a primary, and all of them write down its timeline, which
// is what they are believed by.
func (w *watched) follow(primary *rywtest.Server, others ...*rywtest.Server) error {
	for _, s := range others {
		if err := s.Follow(w.ctx, primary); err != nil {
			return err
		}
	}
	return w.checkpoint(append([]*rywtest.Server{primary}, others...)...)
}

// A replica is paused, killed, promoted and restored while writes go on. After each of
// these the series, the page, the log and the doctor tell the same.
func TestAllTellTheSameStory(t *testing.T) {
	w := newWatched(t)
	p, r0, r1 := w.cluster.Primary(), w.cluster.Replica(0), w.cluster.Replica(1)
	const replica, proven, info, warn = `role="replica"`, `state="proven"`, `level=INFO msg="gorm-ryw: `, `level=WARN msg="gorm-ryw: `
	follows := func(i int) doctor.Finding {
		return doctor.Finding{Level: doctor.OK, Server: fmt.Sprint("replica ", i), Check: "follow", Found: "arrived"}
	}
	serves := func(s *rywtest.Server) func(samples) bool { return is(1, "ryw_node_state", node(s), proven) }
	caughtUp := func(s *rywtest.Server) shown { return shown{Name: address(s), State: "caught up"} }
	primary := shown{State: "primary", Primary: true}

	w.step("all is well", func() error { w.goesOn(); return nil }, story{
		metrics: []func(samples) bool{serves(r0), serves(r1), is(1, "ryw_node_timeline", `role="primary"`), is(1, "ryw_mode", `mode="normal"`)},
		page:    []shown{primary, caughtUp(r0), caughtUp(r1)},
		doctor:  []doctor.Finding{follows(1), follows(2)},
	})
	w.step("paused", func() error { return r0.PauseReplay(w.ctx) }, story{
		metrics: []func(samples) bool{
			is(1, "ryw_replica_replay_paused", node(r0)), above(0, "ryw_replica_gap_bytes", node(r0)), above(1, "ryw_replica_lag_seconds", node(r0)),
			above(0, "ryw_replica_out_of_rotation_seconds", node(r0)), is(1, "ryw_replica_stuck", node(r0)), serves(r0),
			is(0, "ryw_replica_replay_paused", node(r1)), is(0, "ryw_replica_stuck", node(r1)), serves(r1),
		},
		page:   []shown{{Name: address(r0), State: "stuck", Paused: true, Stuck: true, Gap: 1}, caughtUp(r1), primary},
		log:    []string{info + `slow replica leaves rotation" node=` + address(r0), warn + `replica is stuck out of rotation" node=` + address(r0)},
		doctor: []doctor.Finding{{Level: doctor.Fail, Server: "replica 1", Check: "paused", Found: "replay is paused"}, follows(2)},
	})
	w.step("resumed", func() error { return r0.ResumeReplay(w.ctx) }, story{
		metrics: []func(samples) bool{is(0, "ryw_replica_replay_paused", node(r0)), is(0, "ryw_replica_out_of_rotation_seconds", node(r0)), is(0, "ryw_replica_stuck", node(r0)), serves(r0)},
		page:    []shown{caughtUp(r0), caughtUp(r1)},
		log:     []string{info + `replica is back in rotation" node=` + address(r0)},
		doctor:  []doctor.Finding{follows(1), follows(2)},
	})
	w.step("killed", func() error { return r1.Kill(w.ctx) }, story{
		metrics: []func(samples) bool{is(1, "ryw_node_state", node(r1), `state="down"`), is(0, "ryw_node_state", node(r1), proven), serves(r0)},
		page:    []shown{caughtUp(r0), {Name: address(r1), State: "unknown"}},
		log:     []string{warn + `replica does not answer" node=` + address(r1)},
		doctor:  []doctor.Finding{follows(1), {Level: doctor.Fail, Server: "replica 2", Check: "connect"}},
	})
	w.step("started again", func() error { return r1.Start(w.ctx) }, story{
		metrics: []func(samples) bool{serves(r0), serves(r1)},
		page:    []shown{caughtUp(r0), caughtUp(r1)},
		log:     []string{info + `replica serves token reads" node=` + address(r1)},
		doctor:  []doctor.Finding{follows(1), follows(2)},
	})
	failOver := func() error {
		if err := p.Kill(w.ctx); err != nil {
			return err
		}
		if err := r0.Promote(w.ctx); err != nil {
			return err
		}
		err := w.follow(r0, r1)
		w.goesOn()
		return err
	}
	w.step("promoted", failOver, story{
		metrics: []func(samples) bool{
			is(2, "ryw_node_timeline", `role="primary"`), is(1, "ryw_node_state", node(r0), replica, `state="ineligible"`), serves(r1),
		},
		page:   []shown{primary, {Name: address(r0), State: "promoted"}, caughtUp(r1)},
		log:    []string{warn + `another server was promoted"`, warn + `replica serves no reads" node=` + address(r0)},
		doctor: []doctor.Finding{{Level: doctor.Fail, Server: "replica 1", Check: "role", Found: "not a standby"}, follows(2)},
	})
	failBack := func() error {
		if err := w.follow(r0, p); err != nil {
			return err
		}
		if err := r0.Stop(w.ctx); err != nil {
			return err
		}
		if err := p.Promote(w.ctx); err != nil {
			return err
		}
		err := w.follow(p, r0, r1)
		w.goesOn()
		return err
	}
	w.step("restored", failBack, story{
		metrics: []func(samples) bool{is(3, "ryw_node_timeline", `role="primary"`), serves(r0), serves(r1)},
		page:    []shown{primary, caughtUp(r0), caughtUp(r1)},
		log:     []string{info + `replica serves token reads" node=` + address(r0)},
		doctor:  []doctor.Finding{follows(1), follows(2)},
	})
	w.countsAgree()
}

// countsAgree compares what was counted with what the application was told.
func (w *watched) countsAgree() {
	w.t.Helper()
	w.writer.close()
	for _, wrong := range w.writer.wrong {
		w.t.Errorf("a write was not seen: %s", wrong)
	}
	if have := w.value("ryw_possibly_lost_reads_total"); have != float64(w.writer.lost) {
		w.t.Errorf("possibly lost: have %v in the series, %d were explained so", have, w.writer.lost)
	}
	const lost = `level=ERROR msg="gorm-ryw: a session has written or read what may have been lost in a failover"`
	if have := strings.Contains(w.log.String(), lost); have != (w.writer.lost > 0) {
		w.t.Errorf("possibly lost: %d times, and in the log: %v", w.writer.lost, have)
	}
	series := w.value("ryw_token_fallbacks_total") + w.value("ryw_other_fallbacks_total")
	if have := w.looks().All.Fallbacks; float64(have) != series {
		w.t.Errorf("fallbacks: have %d on the page, %v in the series", have, series)
	}
}
