package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Sizes of what may be on its way in one direction of one connection.
const (
	chunkSize   = 32 << 10
	queueLength = 128
)

// verdict is what the watcher of a direction decides about a chunk.
type verdict int

const (
	pass       verdict = iota
	passMuting         // pass it; whatever the other side answers is to be lost
	cutNow             // drop what is on its way
	cutBehind          // deliver what is on its way, then cut
)

// parcel is something on its way: bytes, or the end of the stream.
type parcel struct {
	buf  *[chunkSize]byte // nil: the end
	n    int
	due  time.Time
	mute bool // answers to it are to be lost
	cut  bool // the stream ends by a reset
}

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// pipe moves bytes in one direction: one goroutine reads and stamps them with the
// time they are due, another delivers them when it has come.
type pipe struct {
	c     *conn
	see   func(chunk []byte) ([]byte, verdict)
	queue chan parcel
	clock clock
}

func newPipe(c *conn, see func([]byte) ([]byte, verdict)) *pipe {
	return &pipe{c: c, see: see, queue: make(chan parcel, queueLength), clock: clock{done: c.ctx.Done()}}
}

// run returns when the stream has ended, both goroutines included.
func (l *pipe) run(from, to *net.TCPConn) {
	var reader sync.WaitGroup
	reader.Go(func() { l.read(from) })
	l.deliver(to)
	reader.Wait()
}

// read ends after it has queued the end of the stream, or when the connection is
// cut.
func (l *pipe) read(from *net.TCPConn) {
	for {
		buf := chunks.Get().(*[chunkSize]byte)
		n, err := from.Read(buf[:])
		if n > 0 {
			chunk, v := l.see(buf[:n])
			if !l.queueChunk(parcel{buf: buf, n: len(chunk), mute: v == passMuting}, v) {
				return
			}
		}
		if err != nil {
			l.send(parcel{cut: !errors.Is(err, io.EOF)})
			return
		}
	}
}

// queueChunk acts on a verdict and reports whether to read on.
func (l *pipe) queueChunk(it parcel, v verdict) bool {
	switch {
	case v == cutNow:
		l.c.cut()
		return false
	case !l.send(it):
		return false
	case v == cutBehind:
		l.send(parcel{cut: true})
		return false
	}
	return true
}

func (l *pipe) send(it parcel) bool {
	it.due = time.Now().Add(time.Duration(l.c.p.delay.Load()))
	select {
	case l.queue <- it:
		return true
	case <-l.c.ctx.Done():
		return false
	}
}

func (l *pipe) deliver(to *net.TCPConn) {
	defer l.clock.close()
	for {
		it, ok := l.next()
		if !ok {
			return
		}
		if it.buf == nil {
			l.finish(to, it.cut)
			return
		}
		if it.mute {
			l.c.muted.Store(true) // before the answer can arrive
		}
		_, err := to.Write(it.buf[:it.n])
		chunks.Put(it.buf)
		if err != nil {
			l.c.fail()
			return
		}
	}
}

// next waits for the next parcel, for its time, and for the network.
func (l *pipe) next() (parcel, bool) {
	done := l.c.ctx.Done()
	select {
	case it := <-l.queue:
		if !l.clock.sleepUntil(it.due) {
			return it, false
		}
		select {
		case <-l.c.p.passage():
			return it, true
		case <-done:
		}
	case <-done:
	}
	return parcel{}, false
}

// finish passes on the end of the stream as it was: a goodbye or a reset.
func (l *pipe) finish(to *net.TCPConn, cut bool) {
	if cut || to.CloseWrite() != nil {
		l.c.fail()
	}
}
