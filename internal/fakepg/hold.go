package fakepg

import "time"

// Hold keeps the answers to all statements that arrive while it lasts.
type Hold struct {
	s        *Server
	part     string        // of the statements that are held
	arrivals chan struct{} // one for each statement that was held
	let      chan struct{} // one for each that may go on
	released chan struct{} // closed when all may
}

// Hold begins to hold answers back. A hold before is replaced, and what it held
// is still its own to release.
func (s *Server) Hold() *Hold { return s.HoldOnly("") }

// HoldOnly is Hold of statements that contain a text.
func (s *Server) HoldOnly(part string) *Hold {
	h := &Hold{
		s: s, part: part, arrivals: make(chan struct{}, 1024),
		let: make(chan struct{}, 1024), released: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = h
	return h
}

// Arrived waits until one more statement is held.
func (h *Hold) Arrived() {
	h.s.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-h.arrivals:
	case <-limit.C:
		h.s.t.Fatalf("no statement arrived")
	}
}

// Let lets one statement be answered: one that is held or the next one.
func (h *Hold) Let() { h.let <- struct{}{} }

// Release answers what is held and ends the hold.
func (h *Hold) Release() {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.hold == h {
		h.s.hold = nil
	}
	close(h.released)
}

type outcome int

const (
	goOn outcome = iota
	canceled
	dropped
)

func (h *Hold) wait(c *conn) outcome {
	h.arrivals <- struct{}{}
	select {
	case <-h.let:
		return goOn
	case <-h.released:
		return goOn
	case <-c.canceled:
		return canceled
	case <-c.gone:
		return dropped
	}
}
