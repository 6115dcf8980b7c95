package rywpgx

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// tap sits between pgx and one connection to a server. It adds a question to a
// packet that pgx sends and takes the answer out of what pgx receives, so that pgx
// sees its own messages only and nothing waits for the network one more time.
//
// The question is a message of its own with an answer of its own: behind the
// statement, it is in no transaction with it, and an error of one does not touch
// the other.
//
// Everything but ask and foreign belongs to whoever uses the connection; pgx may
// send a goodbye from another goroutine when it gives the connection up.
type tap struct {
	r io.Reader
	w io.Writer

	ask     atomic.Pointer[question] // to be sent with the next packet it fits
	busy    atomic.Bool              // what is sent is of an operation that is followed
	foreign atomic.Bool              // a statement was sent that was of none

	packet []byte    // scratch
	due    []segment // whose the next answers are; pgx's when empty
	frame  frame
	ours   bool   // the message under way is of an answer
	answer []byte // it, as far as it has come
	in     []byte // scratch
	pass   []byte // what pgx has not yet taken
	passed int    // how much of pass it has taken
}

// segment is a run of messages from the server: up to a question's answer, or up
// to the end of the ready-th answer that pgx waits for.
type segment struct {
	q     *question
	ready int
}

const inSize = 8 << 10 // what the server sends at once, by default

func newTap(r io.Reader, w io.Writer) *tap { return &tap{r: r, w: w} }

// Write sends a packet, together with the question if that is to go with it.
func (t *tap) Write(packet []byte) (int, error) {
	q := t.ask.Load()
	if q == nil {
		if !t.busy.Load() && read(packet).executes {
			t.foreign.Store(true)
		}
		return t.w.Write(packet)
	}
	o := read(packet)
	if o.ready == 0 || q.first && !o.parses || !q.first && !o.executes {
		return t.w.Write(packet)
	}
	t.ask.Store(nil)
	return t.send(packet, q, o.ready)
}

func (t *tap) send(packet []byte, q *question, ready int) (int, error) {
	before := 0
	if q.first {
		t.packet = append(append(t.packet[:0], q.messages...), packet...)
		t.due = append(t.due, segment{q: q})
		before = len(q.messages)
	} else {
		t.packet = append(append(t.packet[:0], packet...), q.messages...)
		t.due = append(t.due, segment{ready: ready}, segment{q: q})
	}
	q.begun, q.sent = mono.Now(), true
	n, err := t.w.Write(t.packet)
	if cap(t.packet) > inSize {
		t.packet = nil
	}
	if n == 0 && err != nil {
		q.sent = false
	}
	return max(0, min(n-before, len(packet))), err
}

// Read gives pgx what is meant for it.
func (t *tap) Read(dst []byte) (int, error) {
	for t.passed == len(t.pass) {
		if len(t.due) == 0 {
			n, err := t.r.Read(dst)
			t.frame.skip(dst[:n])
			return n, err
		}
		if err := t.pull(); err != nil {
			return 0, err
		}
	}
	n := copy(dst, t.pass[t.passed:])
	t.passed += n
	if t.passed == len(t.pass) {
		t.pass, t.passed = t.pass[:0], 0
	}
	return n, nil
}

// pull reads once from the server and sorts what came.
func (t *tap) pull() error {
	if t.in == nil {
		t.in = make([]byte, inSize)
	}
	n, err := t.r.Read(t.in)
	t.sort(t.in[:n])
	if n > 0 {
		return nil // an error will come again
	}
	return err
}

func (t *tap) sort(b []byte) {
	for len(b) > 0 {
		if t.frame.fresh() {
			t.ours = len(t.due) > 0 && t.due[0].q != nil
		}
		n, end := t.frame.next(b)
		if t.ours {
			t.answer = append(t.answer, b[:n]...)
		} else {
			t.pass = append(t.pass, b[:n]...)
		}
		if end {
			t.ended()
		}
		b = b[n:]
	}
}

// ended takes note of a message that is complete.
func (t *tap) ended() {
	switch {
	case t.ours:
		q := t.due[0].q
		if q.take(t.answer) {
			t.pass = append(t.pass, t.answer...)
		}
		t.answer = t.answer[:0]
		if q.ready == 0 {
			t.pop()
		}
	case t.frame.kind() == msgReady && len(t.due) > 0:
		if t.due[0].ready--; t.due[0].ready == 0 {
			t.pop()
		}
	}
}

func (t *tap) pop() {
	t.due = append(t.due[:0], t.due[1:]...)
	t.ours = false
}

// wait reads until the answer to q is complete. It may be used only when pgx is
// not waiting for anything. What it reads beyond is kept for pgx. If the time is
// up, the answer will be taken out whenever it comes.
func (t *tap) wait(q *question, conn net.Conn, timeout time.Duration) error {
	if !q.open() {
		return nil
	}
	if len(t.due) == 0 || t.due[0].q == nil {
		return errNoAnswer
	}
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	defer conn.SetReadDeadline(time.Time{}) // fails only if the connection is closed
	for q.open() {
		if err := t.pull(); err != nil {
			return err
		}
	}
	return nil
}
