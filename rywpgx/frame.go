package rywpgx

import "encoding/binary"

// Types of messages that a tap looks at. Source: PostgreSQL manual, 55.7.
const (
	// from the client
	msgQuery   = 'Q'
	msgCall    = 'F'
	msgParse   = 'P'
	msgExecute = 'E'
	msgSync    = 'S'
	// from the server
	msgDataRow      = 'D'
	msgResult       = 'V'
	msgError        = 'E'
	msgNotice       = 'N'
	msgNotification = 'A'
	msgParameter    = 'S'
	msgReady        = 'Z'
)

const headLen = 5 // type and length

// frame follows the messages in a stream of bytes that comes in pieces. The zero
// value stands at the beginning of a message.
type frame struct {
	head [headLen]byte
	have int // bytes of head
	left int // bytes of the body that are still to come
}

// fresh reports whether the next byte begins a message.
func (f *frame) fresh() bool { return f.have == 0 }

// kind is the type of the message that is under way or has just ended.
func (f *frame) kind() byte { return f.head[0] }

// next consumes bytes of one message and returns how many, and whether they end
// it.
func (f *frame) next(b []byte) (n int, end bool) {
	if f.have < headLen {
		n = copy(f.head[f.have:], b)
		f.have += n
		if f.have < headLen {
			return n, false
		}
		f.left = max(0, int(binary.BigEndian.Uint32(f.head[1:]))-4)
	}
	m := min(f.left, len(b)-n)
	f.left -= m
	if f.left > 0 {
		return n + m, false
	}
	f.have = 0
	return n + m, true
}

// skip follows b.
func (f *frame) skip(b []byte) {
	for len(b) > 0 {
		n, _ := f.next(b)
		b = b[n:]
	}
}

// outgoing is what the whole messages of one packet to the server ask for.
type outgoing struct {
	ready    int  // how many answers ReadyForQuery it will get
	executes bool // it runs a statement
	parses   bool // it runs or prepares one
}

// read looks through a packet. A packet that is not made of whole messages asks
// for nothing that a tap could hold on to.
func read(packet []byte) (o outgoing) {
	for b := packet; len(b) > 0; {
		if len(b) < headLen {
			return outgoing{}
		}
		size := int64(binary.BigEndian.Uint32(b[1:])) + 1
		if size < headLen || size > int64(len(b)) {
			return outgoing{}
		}
		switch b[0] {
		case msgQuery:
			o.ready++
			o.executes, o.parses = true, true
		case msgSync, msgCall:
			o.ready++
		case msgExecute:
			o.executes, o.parses = true, true
		case msgParse:
			o.parses = true
		}
		b = b[size:]
	}
	return o
}
