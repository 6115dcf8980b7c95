package watcher

import (
	"fmt"
	"sync"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
)

// heard collects what a group tells of one node.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) notify(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns what was told of a node, in short, and forgets it.
func (h *heard) of(n *Node) (texts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []Event
	for _, e := range h.events {
		switch {
		case e.Node != n:
			rest = append(rest, e)
		case e.Kind == StateChanged:
			texts = append(texts, fmt.Sprintf("%s>%s", e.From, e.To))
		case e.Kind == Promoted:
			texts = append(texts, fmt.Sprintf("promoted %d>%d", e.OldTimeline, e.NewTimeline))
		case e.Kind == Refused:
			texts = append(texts, "refused: "+e.Reason)
		}
	}
	h.events = rest
	return texts
}

func newHeard(t *testing.T) (*cluster, *heard) {
	h := &heard{}
	cfg := quiet
	cfg.Notify = h.notify
	return newCluster(t, cfg), h
}

func (h *heard) want(t *testing.T, n *Node, want ...string) {
	t.Helper()
	if have := h.of(n); fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%s: have %q, want %q", n.Name(), have, want)
	}
}

func TestChangesOfConditionAreTold(t *testing.T) {
	c, h := newHeard(t)
	n, s := c.standby(1000)
	h.want(t, c.group.Primary, "unknown>proven")
	if have := h.of(n); len(have) == 0 || have[len(have)-1] != "unknown>proven" && have[len(have)-1] != "healthy>proven" {
		t.Errorf("at the start: have %q", have)
	}
	c.sample(n)
	h.want(t, n)
	s.Fail("57P03")
	c.fails(n)
	h.want(t, n, "proven>down")
	s.Fail("")
	c.recovered(n)
	h.want(t, n, "down>proven")
	s.Crash(func(st *fakepg.State) { st.LSN = 500 })
	c.recovered(n)
	if have := h.of(n); len(have) == 0 || have[len(have)-1] != "down>ineligible" && have[len(have)-1] != "proven>ineligible" {
		t.Errorf("went back: have %q", have)
	}
}

// What the primary says may change what a replica is good for.
func TestPrimaryChangesTheConditionOfReplicas(t *testing.T) {
	c, h := newHeard(t)
	n, s := c.standby(1000)
	h.of(n)
	h.of(c.group.Primary)
	s.Advance(500)
	c.sample(n)
	c.sample(c.group.Primary) // which is at 1000
	h.want(t, n, "proven>ineligible")
}

func TestPromotionIsTold(t *testing.T) {
	c, h := newHeard(t)
	n, _ := c.standby(1000)
	h.of(n)
	h.of(c.group.Primary)
	c.promote(2, 2000)
	var promoted int
	for _, text := range h.of(c.group.Primary) {
		if text == "promoted 1>2" {
			promoted++
		}
	}
	if promoted != 1 {
		t.Errorf("told %d times, want once", promoted)
	}
	h.want(t, n, "proven>healthy")
}

func TestRefusalIsToldOnce(t *testing.T) {
	c, h := newHeard(t)
	n, _ := c.standby(1000)
	h.of(n)
	for range 2 {
		_ = n.distrust(pooledReason)
	}
	h.want(t, n, "refused: "+pooledReason, "proven>healthy")
}

func TestConditionsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for i, c := range Conditions() {
		if int(c) != i || seen[c.String()] {
			t.Errorf("condition %d: have %d, %q", i, c, c)
		}
		seen[c.String()] = true
	}
	if len(seen) != int(conditions) || Condition(99).String() != "unknown" {
		t.Errorf("have %d conditions", len(seen))
	}
}

func TestSharedSampleSaysSo(t *testing.T) {
	c := newCluster(t, quiet)
	n, s := c.standby(1000)
	hold := s.Hold()
	underWay := c.join(n)
	hold.Arrived()
	if _, shared, err := n.join(); shared || err != nil {
		t.Errorf("first: have shared %v, %v", shared, err)
	}
	if _, shared, err := n.join(); !shared || err != nil {
		t.Errorf("second: have shared %v, %v", shared, err)
	}
	hold.Release()
	if _, err := c.finished(underWay); err != nil {
		t.Error(err)
	}
}
