package main

import (
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func newShop(t *testing.T) (*shop, *rywtest.Cluster) {
	t.Helper()
	c, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := openShop(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	for _, r := range c.Replicas() {
		if err := r.PauseReplay(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

func (s *shop) next(t *testing.T) work {
	t.Helper()
	select {
	case w := <-s.worked:
		return w
	case <-time.After(30 * time.Second):
		t.Fatal("no job was worked on")
		return work{}
	}
}

// A job sees the order that it is about, wherever the replicas are; without its
// token it does not.
func TestJobsSeeTheWriteThatTriggeredThem(t *testing.T) {
	s, c := newShop(t)
	for _, item := range []string{"book", "lamp"} {
		if err := s.place(t.Context(), &Order{Item: item}, true); err != nil {
			t.Fatal(err)
		}
		if w := s.next(t); w.item != item || w.node != "primary" {
			t.Errorf("have %+v, want %q", w, item)
		}
	}
	if err := s.place(t.Context(), &Order{Item: "pen"}, false); err != nil {
		t.Fatal(err)
	}
	if w := s.next(t); w.item != "" || w.node == "primary" {
		t.Errorf("without a token: have %+v, want a replica that lacks it", w)
	}

	// Once the replicas have it, one of them serves.
	for _, r := range c.Replicas() {
		if err := r.ResumeReplay(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.WaitReplicated(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.place(t.Context(), &Order{Item: "ink"}, true); err != nil {
		t.Fatal(err)
	}
	if w := s.next(t); w.item != "ink" {
		t.Errorf("have %+v", w)
	}
}

func TestProgram(t *testing.T) {
	if err := run(t.Context()); err != nil {
		t.Error(err)
	}
}
