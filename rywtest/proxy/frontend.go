package proxy

import (
	"encoding/binary"
	"sync/atomic"
)

// hook is a function that users set to look at messages.
type hook struct {
	f atomic.Pointer[func(msgType byte, payload []byte) bool]
}

func (h *hook) set(f func(byte, []byte) bool) {
	if f == nil {
		h.f.Store(nil)
		return
	}
	h.f.Store(&f)
}

func (h *hook) active() bool { return h.f.Load() != nil }

func (h *hook) says(msgType byte, payload []byte) bool {
	f := h.f.Load()
	return f != nil && (*f)(msgType, payload)
}

// CutOn has f asked about every message that a PostgreSQL client sends after its
// startup. When f returns true the server gets everything before that message
// but not its end, hence never acts on it, and the client's connection is reset.
//
// msgType is the message's first byte ('Q' query, 'P' parse, 'B' bind, 'E'
// execute, …); payload is what follows the length, at most its first 64 KiB, and
// is not valid after f returns. f is called by the goroutines of several
// connections; a message that had begun before f was set is not shown to it.
// nil takes f away. Counting calls of an f that returns false is a way to watch.
func (p *Proxy) CutOn(f func(msgType byte, payload []byte) bool) { p.cutOn.set(f) }

// CutAnswer is like CutOn, but the message for which f returns true reaches the
// server, which acts on it; the client's connection is reset as soon as the server
// sends anything after that, of which no byte arrives. The client does not learn
// what has happened, though it has.
func (p *Proxy) CutAnswer(f func(msgType byte, payload []byte) bool) { p.cutAnswer.set(f) }

// frontend follows the messages in what one client sends (PostgreSQL manual, 55.7
// "Message Formats"): first startup packets, which are a length and content, then
// messages, which have a type before the length. It never holds back bytes.
type frontend struct {
	c     *conn
	phase phase

	head    []byte // the part of type and length that has arrived
	rest    int    // bytes that the current packet still lacks
	begun   bool   // the head is complete
	keep    bool   // somebody wants to see the payload
	payload []byte
}

type phase int

const (
	startup phase = iota // packets without a type
	regular              // messages with one
	opaque               // encrypted, or not PostgreSQL
)

const (
	maxPayload    = 64 << 10
	maxStartup    = 10000 // PostgreSQL refuses longer ones
	tlsHandshake  = 0x16
	protocol3     = 3 << 16
	protocolLimit = 4 << 16
)

func newFrontend(c *conn) *frontend { return &frontend{c: c} }

// see counts a chunk and asks the hooks about the messages that end in it.
func (f *frontend) see(chunk []byte) ([]byte, verdict) {
	counts := &f.c.p.counts
	counts.up.Add(uint64(len(chunk)))
	if f.c.answered.Swap(false) {
		counts.roundTrips.Add(1)
	}
	v, start := pass, 0 // start: where the current message begins
	for at := 0; at < len(chunk) && f.phase != opaque; {
		at += f.take(chunk[at:])
		if !f.begun || f.rest > 0 {
			break // it goes on in the next chunk
		}
		switch f.end() {
		case cutBehind:
			return chunk[:start], cutBehind
		case passMuting:
			v = passMuting
		}
		start = at
	}
	return chunk, v
}

// take consumes bytes up to the end of the current packet and returns how many.
func (f *frontend) take(data []byte) int {
	used := 0
	if !f.begun {
		used = f.takeHead(data)
	}
	if !f.begun {
		return used
	}
	body := data[used:min(len(data), used+f.rest)]
	f.rest -= len(body)
	if f.keep {
		f.payload = append(f.payload, body[:min(len(body), maxPayload-len(f.payload))]...)
	}
	return used + len(body)
}

func (f *frontend) takeHead(data []byte) int {
	size := 5
	if f.phase == startup {
		size = 4
		if len(f.head) == 0 && data[0] == tlsHandshake {
			f.phase = opaque
			return len(data)
		}
	}
	used := min(size-len(f.head), len(data))
	f.head = append(f.head, data[:used]...)
	if len(f.head) == size {
		f.begin(int(binary.BigEndian.Uint32(f.head[size-4:])))
	}
	return used
}

// begin looks at a complete head: length counts itself.
func (f *frontend) begin(length int) {
	if length < 4 || f.phase == startup && length > maxStartup {
		f.phase = opaque
		return
	}
	f.begun, f.rest = true, length-4
	f.keep = f.phase == startup || f.c.p.cutOn.active() || f.c.p.cutAnswer.active()
}

// end handles a complete packet.
func (f *frontend) end() verdict {
	v := pass
	if f.phase == startup {
		f.endStartup()
	} else if f.keep {
		v = f.ask(f.head[0])
	}
	f.head, f.payload, f.begun = f.head[:0], f.payload[:0], false
	return v
}

// endStartup recognises the packet that begins a session. Others ask for
// encryption, after which the next packet is a startup packet again or TLS.
func (f *frontend) endStartup() {
	if len(f.payload) < 4 {
		f.phase = opaque
		return
	}
	if code := binary.BigEndian.Uint32(f.payload); code >= protocol3 && code < protocolLimit {
		f.phase = regular
	}
}

func (f *frontend) ask(msgType byte) verdict {
	switch {
	case f.c.p.cutOn.says(msgType, f.payload):
		return cutBehind
	case f.c.p.cutAnswer.says(msgType, f.payload):
		return passMuting
	}
	return pass
}
