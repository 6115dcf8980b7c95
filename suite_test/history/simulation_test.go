package history

import (
	"fmt"
	"math/rand/v2"
)

// simulation is a primary with lagging replicas and clients that are routed
// correctly by a token (write position, read floor). Each step of an operation
// is a step of its own, so that operations of different clients overlap.
type simulation struct {
	rng      *rand.Rand
	strict   bool
	failover bool // without blind spots: replicas get what is visible only

	now      int64
	timeline uint32
	wal      []commit // the position of a commit is its index plus 1
	replicas []int    // replayed position
	clients  []*client
	h        History
}

type commit struct {
	key     string
	version int64
	visible bool // on the primary
}

type client struct {
	name    string
	seq     int
	token   int // write position and floor, which route alike
	lost    bool
	version map[string]int64 // of the keys this client alone writes

	op   *Op // being run, nil between operations
	step int
	at   int // position of the running write
	fate Outcome
	node int // of the running read: replica, or -1
}

func simulate(seed uint64, ops int, strict, failover bool) History {
	s := &simulation{
		rng: rand.New(rand.NewPCG(seed, 2)), strict: strict, failover: failover,
		timeline: 1, replicas: make([]int, 2),
	}
	for i := range 6 {
		s.clients = append(s.clients, &client{name: fmt.Sprint("c", i), version: make(map[string]int64)})
	}
	for len(s.h.Ops) < ops {
		s.tick()
	}
	for _, c := range s.clients {
		if c.op != nil {
			c.op.Outcome = Unknown // as a recorder hands over what has not ended
			s.h.Ops = append(s.h.Ops, *c.op)
		}
	}
	return s.h
}

func (s *simulation) tick() {
	s.now += (1 + s.rng.Int64N(5)) * 50_000
	switch n := s.rng.IntN(100); {
	case n < 16:
		s.replay(s.rng.IntN(len(s.replicas)))
	case n == 16 && s.failover && s.rng.IntN(20) == 0:
		s.promote()
	default:
		s.advance(s.clients[s.rng.IntN(len(s.clients))])
	}
}

func (s *simulation) replay(r int) {
	for n := s.rng.IntN(4); n > 0 && s.replicas[r] < len(s.wal); n-- {
		if s.failover && !s.wal[s.replicas[r]].visible {
			return
		}
		s.replicas[r]++
	}
}

func (s *simulation) advance(c *client) {
	switch {
	case c.op == nil:
		s.begin(c)
	case c.op.Kind == Write:
		s.write(c)
	default:
		s.read(c)
	}
}

func (s *simulation) begin(c *client) {
	c.seq++
	c.op = &Op{Session: c.name, Seq: c.seq, Start: s.now}
	c.step, c.at = 0, 0
	switch n := s.rng.IntN(10); {
	case n < 3:
		key := c.name + "/" + fmt.Sprint(s.rng.IntN(2))
		c.version[key]++
		c.op.Kind, c.op.Key, c.op.Version = Write, key, c.version[key]
		c.fate = []Outcome{OK, OK, OK, OK, OK, OK, Unknown, Failed}[s.rng.IntN(8)]
	case n == 3:
		s.receive(c, s.clients[s.rng.IntN(len(s.clients))])
	default:
		owner := s.clients[s.rng.IntN(len(s.clients))].name
		c.op.Kind, c.op.Key = Read, owner+"/"+fmt.Sprint(s.rng.IntN(2))
	}
}

func (s *simulation) receive(c, from *client) {
	if from == c || from.op != nil {
		c.op = nil
		c.seq--
		return
	}
	c.op.Kind, c.op.From = Receive, Mark{from.name, from.seq}
	c.token, c.lost = max(c.token, from.token), c.lost || from.lost
	s.end(c, 0)
}

func (s *simulation) end(c *client, o Outcome) {
	c.op.Outcome, c.op.End = o, s.now
	s.h.Ops = append(s.h.Ops, *c.op)
	c.op = nil
}

// write logs, shows and acknowledges. An unknown one may stop anywhere.
func (s *simulation) write(c *client) {
	c.step++
	switch {
	case c.fate == Failed:
		s.end(c, Failed)
	case c.step == 1:
		s.log(c)
	case c.step == 2 && s.rng.IntN(6) > 0:
		c.step-- // the flush takes its time
	case c.step == 2:
		s.show(c.at)
		if s.failover {
			s.acknowledge(c) // nobody sees a commit that is not acknowledged
		}
	case c.step == 3:
		s.acknowledge(c)
	}
}

// log appends the commit. An unknown one may never get there; its writer gives
// up at once, and the commit shows later, if at all. Where promotions lose
// commits it never does: read and then lost without having been acknowledged,
// it would be a violation that no system can avoid.
func (s *simulation) log(c *client) {
	if c.fate == OK || !s.failover && s.rng.IntN(2) == 0 {
		s.wal = append(s.wal, commit{key: c.op.Key, version: c.op.Version})
		c.at = len(s.wal)
	}
	if c.fate == Unknown {
		s.end(c, Unknown)
		s.show(c.at)
	}
}

func (s *simulation) show(at int) {
	if at > 0 {
		s.wal[at-1].visible = true
	}
}

func (s *simulation) acknowledge(c *client) {
	c.op.Timeline, c.op.Position = s.timeline, LSN(c.at)
	c.token = max(c.token, c.at)
	s.end(c, OK)
}

// read chooses a node that is proven fresh enough, reads, and takes the floor
// after the read.
func (s *simulation) read(c *client) {
	switch c.step {
	case 0:
		c.node = s.route(c)
		if c.node < 0 && s.strict && !s.shown(c.token) {
			return // the guard: wait until the primary shows it all
		}
		c.op.Role, c.op.Node = Primary, "p"
		if c.node >= 0 {
			c.op.Role, c.op.Node = Replica, fmt.Sprint("r", c.node)
		}
	case 1:
		c.op.Version = s.value(c.op.Key, c.node)
		c.op.LostReported = c.lost
	case 2:
		c.token = max(c.token, s.position(c.node))
		s.end(c, OK)
		return
	}
	c.step++
}

func (s *simulation) route(c *client) int {
	if s.rng.IntN(5) == 0 {
		return -1 // the primary is always allowed
	}
	first := s.rng.IntN(len(s.replicas))
	for i := range s.replicas {
		if r := (first + i) % len(s.replicas); s.replicas[r] >= c.token {
			return r
		}
	}
	return -1
}

func (s *simulation) shown(to int) bool {
	for _, w := range s.wal[:to] {
		if !w.visible {
			return false
		}
	}
	return true
}

func (s *simulation) position(node int) int {
	if node < 0 {
		return len(s.wal)
	}
	return s.replicas[node]
}

func (s *simulation) value(key string, node int) int64 {
	var version int64
	for _, w := range s.wal[:s.position(node)] {
		if w.key == key && (w.visible || node >= 0) {
			version = w.version
		}
	}
	return version
}

// promote makes a replica the primary. Whatever runs ends without an answer.
func (s *simulation) promote() {
	point := s.replicas[s.rng.IntN(len(s.replicas))]
	s.h.Promotions = append(s.h.Promotions, Promotion{
		At: s.now, OldTimeline: s.timeline, NewTimeline: s.timeline + 1, SwitchPoint: LSN(point),
	})
	s.timeline++
	s.wal = s.wal[:point]
	for r := range s.replicas {
		s.replicas[r] = min(s.replicas[r], point)
	}
	for _, c := range s.clients {
		if c.op != nil {
			s.end(c, Unknown)
		}
		c.lost = c.lost || c.token > point
		c.token = min(c.token, point)
	}
	s.now++
}
