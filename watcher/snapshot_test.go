package watcher

import (
	"context"
	"testing"
)

// Questions that are not samples go where the node's address leads by now, too: the
// server that it led to may live on.
func TestQuestionsFollowTheAddress(t *testing.T) {
	c := newCluster(t, quiet)
	p := c.group.Primary
	c.sample(p)
	ask := func() uint32 {
		t.Helper()
		_, pid, err := p.ask(context.Background(), CaptureSQL)
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	first := ask()
	if again := ask(); again != first {
		t.Errorf("asked by connection %d, then %d, want the same", first, again)
	}
	p.Redial()
	second := ask()
	if second == first {
		t.Error("the same connection after Redial")
	}
	c.group.raise(2)
	if third := ask(); third == second {
		t.Error("the same connection after a promotion")
	}
}
