package proxy

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clock sleeps with a precision of tens of microseconds. The runtime's timers
// cannot: an idle process waits for them in epoll_wait, whose timeout it rounds
// up to whole milliseconds. A timer file descriptor wakes epoll itself.
//
// One goroutine sleeps and closes; any may interrupt.
type clock struct {
	done <-chan struct{} // closed before interrupt is called

	mu      sync.Mutex // protects the fields below
	fd      int
	file    *os.File // fd; made at first use
	stopped bool
}

// soon is how early a clock returns instead of setting a timer, whose own cost is
// of that order.
const soon = 10 * time.Microsecond

// sleepUntil returns false if it was interrupted.
func (c *clock) sleepUntil(due time.Time) bool {
	rest := time.Until(due)
	if rest < soon {
		return true
	}
	file := c.set(rest)
	if file == nil {
		return sleep(rest, c.done) // interrupted, or no descriptors left
	}
	var expirations [8]byte
	_, err := file.Read(expirations[:])
	return err == nil
}

func (c *clock) set(rest time.Duration) *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || !c.make() {
		return nil
	}
	once := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(rest))}
	if unix.TimerfdSettime(c.fd, 0, &once, nil) != nil {
		return nil
	}
	return c.file
}

// make opens the descriptor if it is not; c.mu is held. It is non-blocking, and
// so handed to the runtime's poller.
func (c *clock) make() bool {
	if c.file != nil {
		return true
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false
	}
	c.fd, c.file = fd, os.NewFile(uintptr(fd), "timerfd")
	return true
}

// interrupt ends a sleep and all later ones.
func (c *clock) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.file != nil {
		_ = c.file.SetReadDeadline(time.Unix(1, 0)) // long ago
	}
}

func (c *clock) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.file != nil {
		c.file.Close()
	}
}
