package adminpage

import (
	"sync"
	"time"
)

// What the page remembers: a sample every Step, for Window.
const (
	Step   = 2 * time.Second
	Window = 10 * time.Minute

	points = int(Window / Step)
)

// Page is the handler, and the memory of the last minutes. Safe for concurrent use.
type Page struct {
	src   Source
	began time.Time

	start, end sync.Once
	stop       chan struct{}  // closed when the memory is to end
	done       sync.WaitGroup // the goroutine that remembers

	mu      sync.Mutex // protects what follows
	past    []point    // oldest first, at most points
	changes []Change   // oldest first, at most changesKept
	states  map[place]State
}

// point is what was to be seen at one time.
type point struct {
	at    time.Time
	nodes []Node
	reads []Reads
}

// place names a server.
type place struct {
	cluster int
	name    string
}

func (n *Node) place() place { return place{n.Cluster, n.Name} }

// Change is a server's state that became another.
type Change struct {
	At     time.Time `json:"at"`
	Node   string    `json:"node"`
	From   State     `json:"from"`
	To     State     `json:"to"`
	Reason string    `json:"reason,omitempty"`
}

const changesKept = 50

// New returns the page of a source, which remembers nothing until it is started.
func New(src Source) *Page {
	return &Page{src: src, began: time.Now(), states: map[place]State{}, stop: make(chan struct{})}
}

// Start begins to remember, once. The page must be closed then, and not be started
// later.
func (p *Page) Start() {
	p.start.Do(func() {
		tick := time.NewTicker(Step)
		p.done.Go(func() {
			defer tick.Stop()
			p.run(tick.C)
		})
	})
}

// Close ends the memory and waits for that. The page still answers. Idempotent; a
// nil page is closed.
func (p *Page) Close() {
	if p == nil {
		return
	}
	p.end.Do(func() { close(p.stop) })
	p.done.Wait()
}

func (p *Page) run(tick <-chan time.Time) {
	p.remember(time.Now())
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick:
			p.remember(now)
		}
	}
}

// remember takes up what there is to be seen now.
func (p *Page) remember(now time.Time) {
	next := point{now, p.src.Nodes(), p.src.Reads()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.past) == points {
		copy(p.past, p.past[1:])
		p.past = p.past[:points-1]
	}
	p.past = append(p.past, next)
	p.noteChanges(next)
}

func (p *Page) noteChanges(now point) {
	for i := range now.nodes {
		n := &now.nodes[i]
		was, known := p.states[n.place()]
		p.states[n.place()] = n.State
		if !known || was == n.State {
			continue
		}
		if len(p.changes) == changesKept {
			p.changes = append(p.changes[:0], p.changes[1:]...)
		}
		p.changes = append(p.changes, Change{now.at, n.Name, was, n.State, n.Reason})
	}
}

// memory returns what is remembered. The result is not changed any more.
func (p *Page) memory() ([]point, []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]point(nil), p.past...), append([]Change(nil), p.changes...)
}
