package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// model is two clusters of one primary and three replicas each, and sessions that
// write and read there. It knows what each session must see; a need may ask for
// more, never for less.
type model struct {
	t        *testing.T
	rng      *rand.Rand
	log      []string
	clusters [2]*modelCluster
	threads  [3]*thread
	flying   []query // position queries under way
}

type modelCluster struct {
	key      token.Key
	primary  uint64
	replicas [3]uint64
	lives    [3]token.Incarnation
}

// thread is one session and what it must see per cluster.
type thread struct {
	s    *Session
	must [2]uint64
}

// query is a position query: what it answers is what was when it began, the
// oldest that it may.
type query struct {
	cluster, replica int // replica -1: the primary
	pos              uint64
	node             token.Incarnation
	begun            mono.Instant
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1))}
	life := token.Incarnation(0)
	for i, key := range []token.Key{here, there} {
		c := &modelCluster{key: key, primary: 100}
		for r := range c.replicas {
			life++
			c.replicas[r], c.lives[r] = 100, life
		}
		m.clusters[i] = c
	}
	for i := range m.threads {
		m.threads[i] = &thread{s: New()}
	}
	return m
}

// step does one thing at random. Instants are distinct: time passes.
func (m *model) step() {
	later()
	ci, r := m.rng.IntN(2), m.rng.IntN(3)
	c, th := m.clusters[ci], m.threads[m.rng.IntN(3)]
	switch m.rng.IntN(13) {
	case 0, 1:
		m.note("replicas of %d replay", ci)
		c.replicas[r] += m.rng.Uint64N(c.primary - c.replicas[r] + 1)
	case 2:
		c.primary++
		m.note("write %d:%d, marked", ci, c.primary)
		th.must[ci] = c.primary
		th.s.MarkWrote(m.markKey(c))
	case 3, 4:
		c.primary++
		m.note("write %d:%d, captured", ci, c.primary)
		th.must[ci] = c.primary
		th.s.Advance(c.key, at(1, c.primary), later(), true)
	case 5:
		m.note("read of primary %d:%d, marked", ci, c.primary)
		th.must[ci] = max(th.must[ci], c.primary)
		th.s.MarkSawPrimary(m.markKey(c))
	case 6:
		m.readReplica(th, ci, r)
	case 7:
		m.note("query of primary %d begins at %d", ci, c.primary)
		m.flying = append(m.flying, query{ci, -1, c.primary, 0, mono.Now()})
	case 8:
		m.note("query of replica %d.%d begins at %d", ci, r, c.replicas[r])
		m.flying = append(m.flying, query{ci, r, c.replicas[r], c.lives[r], mono.Now()})
	case 9, 10:
		m.land(th)
	case 11:
		m.restart(c, ci, r)
	case 12:
		m.handOver(th)
	}
	m.check()
}

// markKey is the cluster's, or that of a process that does not know it.
func (m *model) markKey(c *modelCluster) token.Key {
	if m.rng.IntN(4) == 0 {
		return nowhere
	}
	return c.key
}

// readReplica reads from a replica if the session's need allows it.
func (m *model) readReplica(th *thread, ci, r int) {
	c := m.clusters[ci]
	if need := needOf(th.s, c.key); !m.allows(need, c, r) {
		return
	}
	m.note("read of replica %d.%d at %d", ci, r, c.replicas[r])
	if c.replicas[r] < th.must[ci] {
		m.fail("read of replica %d.%d at %d is stale, must see %d", ci, r, c.replicas[r], th.must[ci])
	}
	th.must[ci] = max(th.must[ci], c.replicas[r])
	th.s.ReadNode(c.key, c.lives[r], mono.Now())
}

// allows is what routing may do with a need, without asking anybody.
func (m *model) allows(n *Need, c *modelCluster, r int) bool {
	if n.PrimaryOnly() || len(n.Reads()) > 1 || c.replicas[r] < uint64(n.Position.LSN) {
		return false
	}
	return len(n.Reads()) == 0 || n.Reads()[0].Node == c.lives[r]
}

// land has a query's answer arrive, at a session that need not be the one that
// asked for it.
func (m *model) land(th *thread) {
	if len(m.flying) == 0 {
		return
	}
	i := m.rng.IntN(len(m.flying))
	q := m.flying[i]
	m.flying = append(m.flying[:i], m.flying[i+1:]...)
	c := m.clusters[q.cluster]
	switch {
	case q.replica >= 0:
		m.note("answer of replica %d.%d: %d", q.cluster, q.replica, q.pos)
		th.s.SettleRead(c.key, q.node, at(1, q.pos), q.begun)
	case m.rng.IntN(4) == 0:
		m.note("answer of primary %d renews: %d", q.cluster, q.pos)
		th.s.Renew(c.key, at(1, q.pos), q.begun)
	default:
		m.note("answer of primary %d: %d", q.cluster, q.pos)
		th.s.Advance(c.key, at(1, q.pos), q.begun, m.rng.IntN(2) == 0)
	}
}

// restart begins another life of a replica, further back; who read it is told.
func (m *model) restart(c *modelCluster, ci, r int) {
	old := c.lives[r]
	c.lives[r] += 1000
	c.replicas[r] -= min(c.replicas[r], m.rng.Uint64N(20))
	m.note("replica %d.%d restarts at %d", ci, r, c.replicas[r])
	for _, th := range m.threads {
		if m.rng.IntN(2) == 0 {
			th.s.LoseNode(c.key, old)
		}
	}
}

// handOver gives a thread's token to another thread, or to a new session that
// takes its place, as another process would.
func (m *model) handOver(th *thread) {
	tok := handed(m.t, th.s.Token())
	to := m.threads[m.rng.IntN(3)]
	if m.rng.IntN(2) == 0 {
		m.note("session is continued elsewhere")
		th.s = New(tok)
		return
	}
	m.note("token is handed over")
	to.s.Observe(tok)
	for i := range to.must {
		to.must[i] = max(to.must[i], th.must[i])
	}
}

// check: wherever a session may read, it sees what it must.
func (m *model) check() {
	for i, th := range m.threads {
		for ci, c := range m.clusters {
			n := needOf(th.s, c.key)
			// The weakest node that the need lets through.
			weakest := uint64(n.Position.LSN)
			if !n.PrimaryOnly() && len(n.Reads()) == 0 && weakest < th.must[ci] {
				m.fail("session %d: need of cluster %d is %s, must see %d", i, ci, describe(n), th.must[ci])
			}
		}
	}
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// Whatever happens in whatever order, a need is never less than what the session
// must see.
func TestNeedIsNeverTooWeak(t *testing.T) {
	runs, steps := 400, 60
	if testing.Short() {
		runs = 100
	}
	for seed := range uint64(runs) {
		m := newModel(t, seed)
		for range steps {
			m.step()
		}
	}
}

// Sessions must not ask for more than they need for ever either: with all queries
// answered, any replica that has everything serves.
func TestNeedIsResolvedInTheEnd(t *testing.T) {
	for seed := range uint64(200) {
		m := newModel(t, seed)
		for range 40 {
			m.step()
		}
		for _, th := range m.threads {
			for _, c := range m.clusters {
				th.s.Advance(c.key, at(1, c.primary), later(), false)
				n := needOf(th.s, c.key)
				if n.PrimaryOnly() || len(n.Reads()) > 0 || n.Position != at(1, c.primary) {
					m.fail("need of %s is %s, want %d", c.key, describe(n), c.primary)
				}
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := New()
	var primary atomic.Uint64
	var wg sync.WaitGroup
	sees := func(mine uint64) {
		n := needOf(s, here)
		if !n.PrimaryOnly() && uint64(n.Position.LSN) < mine {
			t.Errorf("need is %s after a write at %d", describe(n), mine)
		}
	}
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 2))
			for range 400 {
				mine := primary.Add(1)
				if rng.IntN(3) == 0 {
					s.MarkWrote(here)
				} else {
					begun := mono.Now()
					s.Advance(here, at(1, primary.Load()), begun, true)
				}
				sees(mine)
				if rng.IntN(4) == 0 {
					begun := mono.Now()
					s.Renew(here, at(1, primary.Load()), begun)
				}
				if rng.IntN(8) == 0 {
					s.ReadNode(here, token.Incarnation(1+rng.IntN(3)), mono.Now())
					s.SettleRead(here, token.Incarnation(1+rng.IntN(3)), at(1, primary.Load()), mono.Now())
					s.LoseNode(here, token.Incarnation(1+rng.IntN(3)))
				}
				if rng.IntN(16) == 0 {
					s.Observe(s.Token())
				}
				sees(mine)
			}
		})
	}
	wg.Wait()
	s.Advance(here, at(1, primary.Load()), later(), false)
	if n := needOf(s, here); n.PrimaryOnly() || n.Position != at(1, primary.Load()) {
		t.Errorf("in the end: have %s", describe(n))
	}
}

func TestInstantsOfTheTestsAreDistinct(t *testing.T) {
	if a, b := later(), later(); a >= b || time.Duration(b-a) > time.Second {
		t.Errorf("have %d, then %d", a, b)
	}
}
