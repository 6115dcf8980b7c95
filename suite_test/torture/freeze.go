package main

import (
	"fmt"
	"syscall"
	"time"
)

// frozen is when a worker process was stopped.
type frozen struct {
	worker   string
	from, to int64 // of the history's clock
}

// freeze stops n worker processes, counted from one on, but leaves two running.
// They go on when what it returns is called.
func (d *director) freeze(first, n int) (thaw func()) {
	all := d.crew.workers
	var stopped []*member
	from := d.rec.Now()
	for i := range min(n, len(all)-2) {
		m := all[(first+i)%len(all)]
		if m.signal(syscall.SIGSTOP) == nil {
			stopped = append(stopped, m)
		}
	}
	return func() {
		for _, m := range stopped {
			_ = m.signal(syscall.SIGCONT) // fails if it has ended, which its reader sees
			d.thawed(frozen{worker: m.orders.Name, from: from, to: d.rec.Now()})
		}
		stopped = nil
	}
}

func (d *director) thawed(f frozen) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = append(d.frozen, f)
	d.spans = append(d.spans, span{from: f.from, to: f.to, text: f.worker + ": frozen"})
}

func (m *member) signal(s syscall.Signal) error {
	if m.cmd.Process == nil {
		return fmt.Errorf("%s has not begun", m.orders.Name)
	}
	return m.cmd.Process.Signal(s)
}

// asleep is for how long a worker was frozen during an operation of its own.
func asleep(all []frozen, worker string, from, to int64) time.Duration {
	var sum int64
	for _, f := range all {
		if f.worker == worker {
			sum += max(0, min(f.to, to)-max(f.from, from))
		}
	}
	return time.Duration(sum)
}
