package policy

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// patience bounds every wait for something that must happen.
const patience = 10 * time.Second

var key = token.Key{System: fakepg.System}

// rig is a router over a cluster of fake servers that are asked once at the start
// and then only when the router has them asked.
type rig struct {
	t       *testing.T
	router  *Router
	group   *watcher.Group
	primary *fakepg.Server
	servers []*fakepg.Server
	set     *Set
}

// newRig starts a primary at position 1000 and standbys at the positions given.
// Everything ends with the test.
func newRig(t *testing.T, s Settings, positions ...uint64) *rig {
	t.Helper()
	states := make([]fakepg.State, len(positions))
	for i, lsn := range positions {
		states[i] = fakepg.StandbyAt(2+i, lsn)
	}
	return newRigOf(t, s, fakepg.PrimaryAt(1000), states...)
}

func newRigOf(t *testing.T, s Settings, primary fakepg.State, standbys ...fakepg.State) *rig {
	t.Helper()
	return newRigWithout(t, "", s, primary, standbys...)
}

// newRigWithout has standbys whose positions are not to be relied on, for a reason.
func newRigWithout(t *testing.T, why string, s Settings, primary fakepg.State, standbys ...fakepg.State) *rig {
	t.Helper()
	leakcheck.Check(t)
	r := &rig{t: t, router: NewRouter(s), primary: fakepg.New(t, primary)}
	cfg := watcher.Config{IdleInterval: time.Hour, ProbeTimeout: patience}
	r.group = watcher.NewGroup(cfg, "primary", r.primary.Dial)
	var replicas []*Replica
	for _, st := range standbys {
		s := fakepg.New(t, st)
		r.servers = append(r.servers, s)
		replicas = append(replicas, &Replica{Node: r.group.Add(s.Addr(), s.Dial, why), Pool: noPool(t)})
	}
	t.Cleanup(r.group.Close)
	r.set = r.router.Pools.AddSet(r.group, replicas)
	r.group.Primary.Start()
	r.settle()
	return r
}

// settle waits until every node was asked for the first time.
func (r *rig) settle() {
	r.t.Helper()
	r.until("every node's first position", func() bool {
		for i, n := range append(r.group.Replicas(), r.group.Primary) {
			s := r.primary
			if i < len(r.servers) {
				s = r.servers[i]
			}
			q, _ := n.Counters()
			if st := n.State(); st.At == 0 || !st.Failed && int(q) != s.Queries() {
				return false
			}
		}
		return true
	})
}

func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		changed := r.group.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			r.t.Fatalf("not published: %s", what)
		}
	}
}

// ask has a node asked for its position, which is published.
func (r *rig) ask(n *watcher.Node) watcher.Sample {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := n.Sample(ctx)
	if err != nil {
		r.t.Fatalf("ask %s: %v", n.Name(), err)
	}
	return s
}

func (r *rig) node(i int) *watcher.Node { return r.set.Replicas[i].Node }

// move puts a standby at a position and has its node know.
func (r *rig) move(i int, lsn uint64) {
	r.t.Helper()
	r.servers[i].Set(func(st *fakepg.State) { st.LSN = lsn })
	r.ask(r.node(i))
}

// kill ends a server's connections and has its node know.
func (r *rig) kill(s *fakepg.Server, n *watcher.Node) {
	r.t.Helper()
	s.Refuse(true)
	s.Drop()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !n.State().Failed { // a primary has a lane without connection
		_, _ = n.Sample(ctx) // fails
	}
}

// queries is how many statements each server has received, the primary first.
func (r *rig) queries() []int {
	n := []int{r.primary.Queries()}
	for _, s := range r.servers {
		n = append(n, s.Queries())
	}
	return n
}

func (r *rig) decide(q *Request) Decision {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := r.router.Decide(ctx, q)
	if d.Reason != Checked { // which is final only with its answer
		r.router.Counted(r.group, &d)
	}
	return d
}

// read is a request of a session under the level that sessions have.
func (r *rig) read(s *session.Session) *Request {
	return &Request{Set: r.set, Level: ReadYourWrites, Sessions: []*session.Session{s}}
}

// wrote is a session that wrote at a position of timeline 1.
func wrote(lsn uint64) *session.Session {
	return session.New(token.FromEntries(token.Entry{Key: key, Write: at(1, lsn)}))
}

// wroteAgo is one that did so some time ago.
func wroteAgo(lsn uint64, ago time.Duration) *session.Session {
	return session.New(token.FromEntries(token.Entry{Key: key, Write: at(1, lsn), Minted: time.Now().Add(-ago)}))
}

func at(timeline uint32, lsn uint64) token.Position {
	return token.Position{Timeline: timeline, LSN: token.LSN(lsn)}
}

// want checks where a decision leads; replica -1 is the primary.
func (r *rig) want(d Decision, replica int, why Reason) {
	r.t.Helper()
	var rep *Replica
	if replica >= 0 {
		rep = r.set.Replicas[replica]
	}
	if d.Replica != rep || d.Reason != why {
		r.t.Errorf("have %s, want replica %d: %s", r.show(d), replica, why)
	}
}

func (r *rig) show(d Decision) string {
	for i, rep := range r.set.Replicas {
		if rep == d.Replica {
			return "replica " + string(rune('0'+i)) + ": " + d.Reason.String()
		}
	}
	return "primary: " + d.Reason.String()
}

// later returns an instant after every one before.
func later() mono.Instant {
	now := mono.Now()
	for mono.Now() == now {
	}
	return mono.Now()
}

// noPool is a pool that never connects.
func noPool(t *testing.T) *sql.DB {
	db := sql.OpenDB(nowhere{})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type nowhere struct{}

var errNowhere = errors.New("leads nowhere")

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errNowhere }
func (nowhere) Driver() driver.Driver                        { return nil }
