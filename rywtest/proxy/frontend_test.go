package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func message(msgType byte, payload string) string {
	return string(msgType) + packet(payload)
}

// packet is a length, which counts itself, and content.
func packet(payload string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(4+len(payload)))) + payload
}

func code(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

var (
	startupPacket = packet(code(3<<16) + "user\x00postgres\x00\x00")
	sslRequest    = packet(code(80877103))
)

// seen feeds a stream to a frontend in chunks of a size and returns what its hook
// was asked about.
func seen(stream string, size int) []string {
	p := &Proxy{}
	var messages []string
	p.CutOn(func(msgType byte, payload []byte) bool {
		messages = append(messages, fmt.Sprintf("%c:%s", msgType, payload))
		return false
	})
	f := newFrontend(&conn{p: p})
	for chunk := range slices.Chunk([]byte(stream), size) {
		f.see(chunk)
	}
	return messages
}

func TestMessagesAreFoundHoweverTheyAreCut(t *testing.T) {
	stream := startupPacket + message('Q', "begin\x00") + message('S', "") + message('P', strings.Repeat("x", 100)) + message('X', "")
	want := []string{"Q:begin\x00", "S:", "P:" + strings.Repeat("x", 100), "X:"}
	for size := 1; size <= len(stream); size++ {
		if have := seen(stream, size); !slices.Equal(have, want) {
			t.Fatalf("in chunks of %d: have %q, want %q", size, have, want)
		}
	}
}

func TestStartupVariants(t *testing.T) {
	query := message('Q', "x")
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		"refused encryption":  {sslRequest + startupPacket + query, []string{"Q:x"}},
		"accepted encryption": {sslRequest + "\x16\x03\x01" + query, nil},
		"protocol 3.2":        {packet(code(3<<16+2)+"\x00") + query, []string{"Q:x"}},
		"cancel request":      {packet(code(80877102) + "12345678"), nil},
		"another protocol":    {"GET / HTTP/1.1\r\n\r\n" + query, nil},
		"length too small":    {code(3) + query, nil},
		"no code":             {packet("") + startupPacket + query, nil},
	} {
		for size := 1; size <= len(test.stream); size++ {
			if have := seen(test.stream, size); !slices.Equal(have, test.want) {
				t.Errorf("%s, in chunks of %d: have %q, want %q", name, size, have, test.want)
			}
		}
	}
}

func TestLongPayloadsAreShortened(t *testing.T) {
	stream := startupPacket + message('d', strings.Repeat("x", maxPayload+100)) + message('Q', "x")
	have := seen(stream, 1000)
	if len(have) != 2 || len(have[0]) != len("d:")+maxPayload || have[1] != "Q:x" {
		t.Errorf("have %d messages, the first of %d bytes, want 2 and %d", len(have), len(have[0]), maxPayload)
	}
}

func TestCutOnStopsBeforeTheEndOfTheMessage(t *testing.T) {
	before := startupPacket + message('Q', "one")
	lost := message('Q', "two")
	stream := before + lost + message('Q', "three")
	for size := 1; size <= len(stream); size++ {
		p := &Proxy{}
		p.CutOn(func(_ byte, payload []byte) bool { return string(payload) == "two" })
		f := newFrontend(&conn{p: p})
		var passed string
		v := pass
		for chunk := range slices.Chunk([]byte(stream), size) {
			var part []byte
			part, v = f.see(chunk)
			passed += string(part)
			if v == cutBehind {
				break
			}
		}
		if v != cutBehind || !strings.HasPrefix(passed, before) || len(passed) >= len(before+lost) {
			t.Fatalf("in chunks of %d: passed %q with verdict %v, want %q and less than all of %q", size, passed, v, before, lost)
		}
	}
}

// recorder is a server that answers each chunk with "ok" and notes all it gets.
type recorder struct {
	mu  sync.Mutex
	got string
}

func (r *recorder) handle(conn *net.TCPConn) {
	buf := make([]byte, 1000)
	for {
		n, err := conn.Read(buf)
		r.mu.Lock()
		r.got += string(buf[:n])
		if err != nil {
			r.got += fmt.Sprintf("[%v]", err)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		_, _ = io.WriteString(conn, "ok")
	}
}

func (r *recorder) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func TestCutOnLosesTheMessage(t *testing.T) {
	var r recorder
	p := start(t, serve(t, r.handle), 0)
	p.CutOn(func(msgType byte, _ []byte) bool { return msgType == 'C' })
	conn := dial(t, p)
	send(t, conn, startupPacket)
	expect(t, conn, "ok")
	send(t, conn, message('Q', "kept")+message('C', "lost"))
	for err := error(nil); err == nil; { // the answer to what was kept may come first
		_, err = conn.Read(make([]byte, 10))
	}
	waitFor(t, func() bool { return strings.HasSuffix(r.all(), "]") })
	if have, want := r.all(), startupPacket+message('Q', "kept")+"[EOF]"; have != want {
		t.Errorf("the server got %q, want %q", have, want)
	}
	p.CutOn(nil)
	again := dial(t, p)
	send(t, again, startupPacket+message('C', "kept"))
	expect(t, again, "ok")
}

func TestCutAnswerLosesTheAnswerOnly(t *testing.T) {
	var r recorder
	p := start(t, serve(t, r.handle), 0)
	p.CutAnswer(func(msgType byte, _ []byte) bool { return msgType == 'C' })
	conn, other := dial(t, p), dial(t, p)
	send(t, conn, startupPacket)
	expect(t, conn, "ok")
	send(t, conn, message('C', "commit"))
	expectReset(t, conn)
	waitFor(t, func() bool { return strings.HasSuffix(r.all(), "]") })
	if have, want := r.all(), startupPacket+message('C', "commit")+"[EOF]"; have != want {
		t.Errorf("the server got %q, want %q", have, want)
	}
	send(t, other, startupPacket)
	expect(t, other, "ok")
}

// A server that is still answering earlier messages must not notice: it might not
// look at the one whose answer is to be lost.
func TestCutAnswerLetsTheServerFinish(t *testing.T) {
	cut, errs := make(chan struct{}), make(chan error, 1)
	p := start(t, serve(t, func(conn *net.TCPConn) {
		_, err := io.ReadFull(conn, make([]byte, len(startupPacket+message('C', ""))))
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; err == nil && i < 50; i++ {
			_, err = conn.Write([]byte("x"))
			<-tick.C
			if i == 0 {
				<-cut
			}
		}
		errs <- err
	}), 0)
	p.CutAnswer(func(msgType byte, _ []byte) bool { return msgType == 'C' })
	conn := dial(t, p)
	send(t, conn, startupPacket+message('C', ""))
	expectReset(t, conn)
	close(cut)
	must(t, <-errs)
}
