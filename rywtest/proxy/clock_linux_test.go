package proxy

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func timers(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "anon_inode:[timerfd]" {
			n++
		}
	}
	return n
}

func TestTimersAreClosedWithTheirConnection(t *testing.T) {
	p := start(t, serve(t, echo), time.Millisecond)
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
	if have := timers(t); have != 2 {
		t.Errorf("have %d timers, want one for each direction", have)
	}
	must(t, p.Close())
	if have := timers(t); have != 0 { // at once: the garbage collector would do it some time
		t.Errorf("have %d timers after the end, want none", have)
	}
}

func TestClock(t *testing.T) {
	done := make(chan struct{})
	c := clock{done: done}
	defer c.close()
	const nap = 3 * time.Millisecond
	begin := time.Now()
	if !c.sleepUntil(begin.Add(nap)) || time.Since(begin) < nap-soon {
		t.Errorf("slept %v, want %v", time.Since(begin), nap)
	}
	if !c.sleepUntil(begin) {
		t.Error("a time in the past was not reached")
	}
	stopped := time.AfterFunc(nap, func() { close(done); c.interrupt() })
	defer stopped.Stop()
	if c.sleepUntil(begin.Add(time.Hour)) {
		t.Error("an hour has passed")
	}
	if c.sleepUntil(time.Now().Add(time.Hour)) {
		t.Error("another hour has passed after an interrupt")
	}
}
