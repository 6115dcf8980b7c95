package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve runs handle for each connection to a listener and returns its address.
func serve(t testing.TB, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer conn.Close(); handle(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { must(t, listener.Close()); wg.Wait() })
	return listener.Addr().String()
}

func echo(conn *net.TCPConn) { _, _ = io.Copy(conn, conn) }

// answerAtEnd reads all there is, then answers.
func answerAtEnd(conn *net.TCPConn) {
	_, _ = io.Copy(io.Discard, conn)
	_, _ = conn.Write([]byte("x"))
}

// start starts a proxy; it is closed before the server it leads to.
func start(t testing.TB, target string, delay time.Duration) *Proxy {
	t.Helper()
	p, err := New(target, Options{Delay: delay})
	must(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func dial(t testing.TB, p *Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return conn.(*net.TCPConn)
}

func send(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	_, err := conn.Write([]byte(text))
	must(t, err)
}

func expect(t testing.TB, conn net.Conn, want string) {
	t.Helper()
	have := make([]byte, len(want))
	if _, err := io.ReadFull(conn, have); err != nil || string(have) != want {
		t.Fatalf("have %q (%v), want %q", have, err, want)
	}
}

// expectSilence checks that nothing arrives for a while.
func expectSilence(t testing.TB, conn *net.TCPConn) {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("have %d bytes and %v, want neither bytes nor an end", n, err)
	}
	must(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
}

func expectReset(t testing.TB, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("have %d bytes and %v, want a reset", n, err)
	}
}

func expectEnd(t testing.TB, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("have %d bytes and %v, want the end", n, err)
	}
}

func TestBytesAndEndsPassThrough(t *testing.T) {
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		p := start(t, serve(t, echo), delay)
		conn := dial(t, p)
		sent := make([]byte, 8<<20)
		source := rand.NewChaCha8([32]byte{1})
		_, err := source.Read(sent)
		must(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := io.Copy(conn, bytes.NewReader(sent)); err != nil {
				t.Error(err)
			}
			_ = conn.CloseWrite()
		})
		received, err := io.ReadAll(conn)
		must(t, err)
		wg.Wait()
		if !bytes.Equal(received, sent) {
			t.Errorf("delay %v: what came back differs", delay)
		}
		if c := p.Counters(); c.BytesUp != uint64(len(sent)) || c.BytesDown != c.BytesUp || c.Connections != 1 {
			t.Errorf("delay %v: have %+v, want %d bytes each way in 1 connection", delay, c, len(sent))
		}
	}
}

func TestDelayIsAddedEachWay(t *testing.T) {
	const delay = 2 * time.Millisecond
	p := start(t, serve(t, echo), delay)
	conn := dial(t, p)
	best := time.Hour
	for range 100 {
		begin := time.Now()
		send(t, conn, "x")
		expect(t, conn, "x")
		took := time.Since(begin)
		if took < 2*delay {
			t.Fatalf("an answer came after %v, want %v or more", took, 2*delay)
		}
		best = min(best, took)
	}
	if limit := 2*delay + time.Millisecond; best > limit {
		t.Errorf("the fastest of 100 answers took %v, want less than %v", best, limit)
	}
	p.SetDelay(-1)
	begin := time.Now()
	for range 100 {
		send(t, conn, "x")
		expect(t, conn, "x")
	}
	if took := time.Since(begin); took > 100*2*delay {
		t.Errorf("100 answers without delay took %v", took)
	}
}

func TestBytesDoNotOvertakeWhenTheDelayShrinks(t *testing.T) {
	p := start(t, serve(t, echo), 100*time.Millisecond)
	conn := dial(t, p)
	send(t, conn, "first ")
	waitFor(t, func() bool { return p.Counters().BytesUp == 6 })
	p.SetDelay(0)
	send(t, conn, "second")
	expect(t, conn, "first second")
}

func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !f(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not reached in 30 s")
		}
	}
}

// 64 MiB are some 2000 chunks; one after the other they would take 20 s.
func TestDelayDoesNotThrottle(t *testing.T) {
	const size = 64 << 20
	p := start(t, serve(t, answerAtEnd), 10*time.Millisecond)
	conn := dial(t, p)
	begin := time.Now()
	_, err := conn.Write(make([]byte, size))
	must(t, err)
	must(t, conn.CloseWrite())
	expect(t, conn, "x")
	took := time.Since(begin)
	t.Logf("%.0f MB/s at a delay of 10 ms", size/took.Seconds()/1e6)
	if took > 10*time.Second {
		t.Errorf("%d bytes took %v", size, took)
	}
}

func TestPartitionHoldsEverythingBack(t *testing.T) {
	p := start(t, serve(t, echo), 0)
	conn := dial(t, p)
	send(t, conn, "before")
	expect(t, conn, "before")
	p.Partition()
	p.Partition()
	send(t, conn, "during")
	expectSilence(t, conn)
	late := dial(t, p)
	send(t, late, "late")
	expectSilence(t, late)
	must(t, late.CloseWrite())
	p.Heal()
	p.Heal()
	expect(t, conn, "during")
	expect(t, late, "late")
	expectEnd(t, late)
	if have := p.Counters().Connections; have != 2 {
		t.Errorf("have %d connections, want 2", have)
	}
}

func TestPartitionedProxyCanBeCutAndClosed(t *testing.T) {
	p := start(t, serve(t, echo), 0)
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
	p.Partition()
	send(t, conn, "x")
	waiting := dial(t, p)
	waitFor(t, func() bool { return p.Counters().Connections == 2 })
	p.CutAll()
	expectReset(t, conn)
	expectReset(t, waiting)
	send(t, dial(t, p), "x")
}

func TestCutAllResetsClientsAndEndsServers(t *testing.T) {
	ends := make(chan error, 1)
	p := start(t, serve(t, func(conn *net.TCPConn) {
		echo(conn)
		_, err := conn.Read(make([]byte, 1))
		ends <- err
	}), time.Hour)
	p.SetDelay(0)
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
	p.SetDelay(time.Hour)
	send(t, conn, "never arrives")
	waitFor(t, func() bool { return p.Counters().BytesUp == 14 })
	p.CutAll()
	expectReset(t, conn)
	if err := <-ends; !errors.Is(err, io.EOF) {
		t.Errorf("the server saw %v, want the end", err)
	}
	p.SetDelay(0)
	again := dial(t, p)
	send(t, again, "y")
	expect(t, again, "y")
}

// Bytes that are not due for long do not hold up the end, in either direction.
func TestCloseDoesNotWaitForTheDelay(t *testing.T) {
	p := start(t, serve(t, func(conn *net.TCPConn) {
		_, _ = conn.Write([]byte("greeting"))
		echo(conn)
	}), time.Hour)
	send(t, dial(t, p), "x")
	waitFor(t, func() bool { c := p.Counters(); return c.BytesUp == 1 && c.BytesDown == 8 })
	must(t, p.Close())
}

func TestRefuse(t *testing.T) {
	p := start(t, serve(t, echo), 0)
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
	for range 2 {
		must(t, p.Refuse(true))
		must(t, p.Refuse(true))
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("have %v, want a refused connection", err)
		}
		send(t, conn, "x")
		expect(t, conn, "x")
		must(t, p.Refuse(false))
		must(t, p.Refuse(false))
		again := dial(t, p)
		send(t, again, "y")
		expect(t, again, "y")
	}
	must(t, p.Close())
	if err := p.Refuse(false); !errors.Is(err, ErrClosed) {
		t.Errorf("have %v, want ErrClosed", err)
	}
}

func TestTargetThatRefusesOrChanges(t *testing.T) {
	p := start(t, "127.0.0.1:1", 0)
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come while dialling
		defer conn.Close()
		expectReset(t, conn)
	}
	p.SetTarget(serve(t, echo))
	conn := dial(t, p)
	send(t, conn, "x")
	expect(t, conn, "x")
}

func TestResetsPassThrough(t *testing.T) {
	p := start(t, serve(t, func(conn *net.TCPConn) {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		_ = conn.SetLinger(0)
	}), time.Millisecond)
	conn := dial(t, p)
	send(t, conn, "x")
	expectReset(t, conn)
}

func TestRoundTripsAreChangesOfDirection(t *testing.T) {
	p := start(t, serve(t, echo), 0)
	conn, other := dial(t, p), dial(t, p)
	for i := range uint64(5) {
		if have := p.Counters().RoundTrips; have != max(i, 1)-1 {
			t.Errorf("after %d answers: have %d round trips, want %d", i, have, max(i, 1)-1)
		}
		send(t, conn, "question")
		expect(t, conn, "question")
	}
	send(t, other, "first of its connection")
	expect(t, other, "first of its connection")
	if have := p.Counters(); have.RoundTrips != 4 || have.Connections != 2 {
		t.Errorf("have %+v, want 4 round trips in 2 connections", have)
	}
}

func TestCloseWithBusyConnections(t *testing.T) {
	for range 20 {
		p := start(t, serve(t, echo), time.Millisecond)
		var wg sync.WaitGroup
		for range 8 {
			conn := dial(t, p)
			wg.Go(func() {
				for {
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
					if _, err := conn.Read(make([]byte, 8)); err != nil {
						return
					}
				}
			})
		}
		waitFor(t, func() bool { return p.Counters().RoundTrips > 8 })
		must(t, p.Close())
		if len(p.conns) > 0 {
			t.Errorf("%d connections were not waited for", len(p.conns))
		}
		must(t, p.Close())
		wg.Wait()
		if _, err := net.Dial("tcp", p.Addr()); err == nil {
			t.Error("a closed proxy accepts connections")
		}
	}
}

// BenchmarkDelay reports how much later than asked a byte comes back, over the
// same without delay: twice the lateness of the clock.
func BenchmarkDelay(b *testing.B) {
	for _, delay := range []time.Duration{0, 50 * time.Microsecond, 500 * time.Microsecond, 5 * time.Millisecond} {
		b.Run(delay.String(), func(b *testing.B) {
			conn := dial(b, start(b, serve(b, echo), delay))
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				send(b, conn, "x")
				expect(b, conn, "x")
				took = append(took, time.Since(begin)-2*delay)
			}
			slices.Sort(took)
			for name, q := range map[string]int{"p50-late-µs": 50, "p99-late-µs": 99} {
				b.ReportMetric(float64(took[len(took)*q/100].Microseconds()), name)
			}
		})
	}
}
