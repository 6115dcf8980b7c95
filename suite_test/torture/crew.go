package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// envWorker makes the program a worker.
const envWorker = "RYW_TORTURE_WORKER"

const (
	startTimeout = 30 * time.Second
	// stopTimeout is how long a worker may take to end, with its history sent.
	stopTimeout = 2 * time.Minute
)

// crew is the worker processes. What one of them hands on passes through here.
type crew struct {
	workers []*member
	ended   func(error) // called when a worker has ended
	wg      sync.WaitGroup
}

// member is a worker process as its parent sees it.
type member struct {
	orders Orders
	cmd    *exec.Cmd
	out    chan toWorker // to its standard input
	stdin  io.WriteCloser

	ready chan struct{} // closed when it has said so, or when it has ended
	done  chan struct{} // closed when its output has ended and what follows is set
	reads atomic.Int64  // that replicas have answered, as it said last
	tally *Tally
	part  history.History
	err   error
}

// startCrew starts the workers and waits until they are ready. The crew must be
// ended by stop or abandon, also if not all of them got ready; it is nil if none
// was started. Whenever a worker has ended, ended is called.
func startCrew(ctx context.Context, all []Orders, ended func(error)) (*crew, error) {
	c := &crew{ended: ended}
	for _, o := range all {
		m, err := c.start(o)
		if err != nil {
			return nil, err
		}
		c.workers = append(c.workers, m)
	}
	for _, m := range c.workers {
		c.wg.Go(m.write)
		c.wg.Go(func() { c.read(m) })
		m.out <- toWorker{Orders: &m.orders}
	}
	return c, c.awaitReady(ctx)
}

func (c *crew) start(o Orders) (*member, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &member{
		orders: o, cmd: exec.Command(self), out: make(chan toWorker, 512),
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	m.cmd.Env = append(os.Environ(), envWorker+"="+o.Name)
	m.cmd.Stderr = os.Stderr
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return m, nil
}

func (c *crew) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	for _, m := range c.workers {
		select {
		case <-m.ready:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", m.orders.Name, context.Cause(ctx))
		}
		select {
		case <-m.done:
			return fmt.Errorf("%s ended at once: %w", m.orders.Name, m.err)
		default:
		}
	}
	return nil
}

// write passes messages on to the worker until out is closed.
func (m *member) write() {
	defer m.stdin.Close() // which ends a worker that has not ended yet
	to := &lines{w: m.stdin}
	for msg := range m.out {
		_ = to.send(msg) // fails if it has ended, which its reader sees
	}
}

// read takes what a worker says to its end.
func (c *crew) read(m *member) {
	defer close(m.done)
	m.err = c.follow(m)
	c.ended(fmt.Errorf("%s has ended", m.orders.Name))
	select {
	case <-m.ready:
	default:
		close(m.ready)
	}
}

func (c *crew) follow(m *member) error {
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	endWithParent(m.cmd)
	if err := m.cmd.Start(); err != nil {
		return err
	}
	err = c.listen(m, bufio.NewReaderSize(stdout, 1<<16))
	return errors.Join(err, m.cmd.Wait())
}

// listen reads messages up to the last one, then the history.
func (c *crew) listen(m *member, r *bufio.Reader) error {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: its output ended: %w", m.orders.Name, err)
		}
		var msg fromWorker
		if err := json.Unmarshal(line, &msg); err != nil {
			return fmt.Errorf("%s: %w", m.orders.Name, err)
		}
		switch {
		case msg.Fatal != "":
			return fmt.Errorf("%s: %s", m.orders.Name, msg.Fatal)
		case msg.Ready:
			close(m.ready)
		case msg.Hand != nil:
			c.pass(msg.Hand)
		case msg.Reads > 0:
			m.reads.Store(msg.Reads)
		case msg.Done != nil:
			m.tally = msg.Done
			m.part, err = history.Decode(r)
			return err
		}
	}
}

// pass gives a token to another worker, if that has room for it.
func (c *crew) pass(h *Hand) {
	to := c.workers[h.To]
	select {
	case to.out <- toWorker{Hand: h}:
	default:
	}
}

// reads is how many judged reads replicas have answered, as far as the workers have
// said.
func (c *crew) reads() (n int64) {
	for _, m := range c.workers {
		n += m.reads.Load()
	}
	return n
}

// stop asks all workers to end and waits for their histories.
func (c *crew) stop() error {
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	for _, m := range c.workers {
		select {
		case m.out <- toWorker{Stop: true}:
		case <-m.done:
		}
	}
	var errs []error
	for _, m := range c.workers {
		select {
		case <-m.done:
		case <-timer.C:
			errs = append(errs, fmt.Errorf("%s does not end", m.orders.Name))
			c.kill()
		}
		<-m.done
		errs = append(errs, m.err)
	}
	c.release()
	return errors.Join(errs...)
}

// kill ends all workers at once.
func (c *crew) kill() {
	for _, m := range c.workers {
		if m.cmd.Process != nil {
			_ = m.cmd.Process.Kill() // fails if it has ended
		}
	}
}

// abandon ends all workers at once and joins everything.
func (c *crew) abandon() {
	c.kill()
	for _, m := range c.workers {
		<-m.done
	}
	c.release()
}

// release ends the goroutines; the workers have ended.
func (c *crew) release() {
	for _, m := range c.workers {
		close(m.out)
	}
	c.wg.Wait()
}
