package rywhttp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// page is a browser whose page makes requests at once, whose responses arrive in
// any order, and a cluster of a primary and two replicas. After every response the
// browser must hold what makes the next request see all that was acknowledged.
type page struct {
	t       *testing.T
	rng     *rand.Rand
	m       *Middleware
	clock   time.Duration
	primary uint64
	replica [2]uint64
	jar     jar
	coming  []arrival
	acked   uint64 // newest write that the browser was told of
	seen    uint64 // newest state that it was shown
	trace   []string
}

// arrival is a response under way: of headers, or of the end of a body.
type arrival struct {
	resp        *http.Response
	wrote, seen uint64
	commits     bool // its body ends with the commit of a transaction
}

func newPage(t *testing.T, seed uint64, cfg Config) *page {
	p := &page{t: t, rng: rand.New(rand.NewPCG(seed, 1)), m: middleware(t, cfg), jar: jar{}, primary: 100}
	began := time.Now()
	p.m.now = func() time.Time { return began.Add(p.clock) }
	return p
}

func (p *page) step() {
	p.primary += uint64(p.rng.IntN(3)) // others write
	for i := range p.replica {
		p.replica[i] += p.rng.Uint64N(p.primary - p.replica[i] + 1)
	}
	switch p.rng.IntN(4) {
	case 0, 1:
		p.request()
	default:
		p.arrive()
	}
}

// request has a handler do something; the response arrives later.
func (p *page) request() {
	var a arrival
	what := [...]func(*session.Session, *arrival){p.write, p.lazyWrite, p.open, p.readPrimary, p.readReplica, p.readReplica, p.fail, p.nothing}[p.rng.IntN(8)]
	h := wrap(p.t, p.m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { what(s, &a) })
	a.resp = call(h, p.jar.give)
	p.coming = append(p.coming, a)
}

func (p *page) write(s *session.Session, a *arrival) {
	p.primary++
	a.wrote = p.primary
	s.Advance(here, at(1, p.primary), mono.Now(), true)
	p.note("write %d", p.primary)
}

func (p *page) lazyWrite(s *session.Session, a *arrival) {
	p.primary++
	a.wrote = p.primary
	s.MarkWrote([...]token.Key{here, anybody}[p.rng.IntN(2)])
	p.note("write %d, marked", p.primary)
}

func (p *page) open(s *session.Session, a *arrival) {
	s.BeginWrite()
	a.commits = true
	p.note("open")
}

func (p *page) readPrimary(s *session.Session, a *arrival) {
	a.seen = p.primary
	s.Advance(here, at(1, p.primary), mono.Now(), false)
	p.note("primary shows %d", a.seen)
}

func (p *page) fail(s *session.Session, a *arrival) {
	a.seen = p.primary
	s.MarkSawPrimary(here)
	p.note("failed at %d", p.primary)
}

func (p *page) nothing(*session.Session, *arrival) {}

// readReplica reads as routing does: where the session's need is met.
func (p *page) readReplica(s *session.Session, a *arrival) {
	var n session.Need
	s.Need(&n, here, time.Time{})
	for _, r := range n.Reads() {
		s.SettleRead(here, r.Node, at(1, p.replica[r.Node-1]), mono.Now())
	}
	node := p.rng.IntN(2)
	n = session.Need{}
	if s.Need(&n, here, time.Time{}); n.PrimaryOnly() || uint64(n.Want().LSN) > p.replica[node] || len(n.Reads()) > 0 {
		p.readPrimary(s, a)
		return
	}
	a.seen = p.replica[node]
	s.ReadNode(here, token.Incarnation(node+1), mono.Now())
	p.note("replica %d shows %d", node+1, a.seen)
}

// arrive has the browser get a response that is under way.
func (p *page) arrive() {
	if len(p.coming) == 0 {
		return
	}
	i := p.rng.IntN(len(p.coming))
	a := p.coming[i]
	p.coming = append(p.coming[:i], p.coming[i+1:]...)
	if a.resp != nil {
		p.jar.take(a.resp)
	}
	if a.commits && a.resp != nil { // the body is still to come
		p.coming = append(p.coming, arrival{commits: true})
		return
	}
	if a.commits {
		p.primary++
		a.wrote = p.primary
	}
	p.acked, p.seen = max(p.acked, a.wrote), max(p.seen, a.seen)
	p.note("told of %d, shown %d", a.wrote, a.seen)
	p.check()
}

func (p *page) check() {
	var n session.Need
	session.New(p.jar.token(p.t, "wfo")).Need(&n, here, time.Time{})
	if n.Marked {
		return
	}
	if have := uint64(n.Position.LSN); have < p.acked {
		p.fatal("have %d, want the write %d covered", have, p.acked)
	}
	shown := uint64(n.Position.LSN)
	for _, r := range n.Reads() {
		shown = max(shown, p.replica[r.Node-1])
	}
	if shown < p.seen && !p.m.cfg.NoFloorCookies {
		p.fatal("have %d, want the state %d covered", shown, p.seen)
	}
}

func (p *page) note(format string, args ...any) {
	p.trace = append(p.trace, fmt.Sprintf(format, args...))
}

func (p *page) fatal(format string, args ...any) {
	p.t.Helper()
	for _, line := range p.trace[max(0, len(p.trace)-12):] {
		p.t.Log(line)
	}
	for name, value := range p.jar {
		p.t.Log(name, value)
	}
	p.t.Fatalf(format, args...)
}

func TestResponsesInAnyOrderDoNotShrinkWhatABrowserHolds(t *testing.T) {
	for name, cfg := range map[string]Config{"floors": {}, "no floors": {NoFloorCookies: true}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				p := newPage(t, seed, cfg)
				for range 150 {
					p.step()
				}
			}
		})
	}
}

// A browser does not keep what it has no use for.
func TestABrowserHoldsFewCookies(t *testing.T) {
	for seed := range uint64(15) {
		p := newPage(t, seed, Config{})
		for range 200 { // one request at a time
			p.request()
			for len(p.coming) > 0 {
				p.arrive()
			}
			p.clock += time.Minute
			if n := p.jar.count("w"); n > 1 {
				p.fatal("have %d cookies of writes", n)
			}
			if n := p.jar.count("f"); n > 1 {
				p.fatal("have %d cookies of reads", n)
			}
			if n := p.jar.count("o"); n > int(DefaultOpenFor/time.Minute)+10 {
				p.fatal("have %d cookies of open transactions", n)
			}
		}
	}
}

// With slots there are never more than that.
func TestSlotsBoundTheCookies(t *testing.T) {
	cfg := Config{Cookie: Cookie{Slots: 4}}
	browser, m := jar{}, middleware(t, cfg)
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) {
		s.ReadNode(there, 5, mono.Now())
		wrote(s, 77)
	})
	for range 50 {
		var burst []*http.Response
		for range 20 {
			burst = append(burst, call(h, browser.give))
		}
		for _, resp := range burst {
			browser.take(resp)
			if browser.count("w") > 4 || browser.count("f") > 4 || browser.count("w") == 0 {
				t.Fatalf("have %v", browser)
			}
			wantWrite(t, browser.token(t, "w"), 77)
		}
	}
}

// Reads merge what a page of many writes has left.
func TestReadsTidyUp(t *testing.T) {
	browser := jar{}
	m := middleware(t, Config{})
	for i := range 40 {
		browser[fmt.Sprintf("ryw-w-%05d", i)] = text(token.Entry{Key: here, Write: at(1, uint64(i+1))})
	}
	h := wrap(t, m, func(_ http.ResponseWriter, _ *http.Request, s *session.Session) { read(s, 30) })
	for range 3 {
		resp := call(h, browser.give)
		if n := len(resp.Header["Set-Cookie"]); n > 2+maxRemoved {
			t.Errorf("one response has %d cookies", n)
		}
		browser.take(resp)
		wantWrite(t, browser.token(t, "w"), 40)
	}
	if have := browser.count("w"); have > tidyAbove {
		t.Errorf("have %d cookies", have)
	}
}

func TestASlotThatIsFreeIsTaken(t *testing.T) {
	c := Config{Cookie: Cookie{Slots: 3}}
	have := []held{{kind: kindWrite, slot: "0"}, {kind: kindWrite, slot: "2"}, {kind: kindFloor, slot: "1"}}
	for range 20 {
		if slot := c.freeSlot(kindWrite, have); slot != "1" {
			t.Fatalf("have %s, want 1", slot)
		}
	}
}
