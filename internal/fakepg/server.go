// Package fakepg is a scripted server for unit tests: it speaks as much of
// PostgreSQL's protocol as the watcher and an idle pool need, answers position
// queries from a settable state, and crashes, hangs and fails when told to.
package fakepg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// T is what is needed of a *testing.T.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// patience bounds every wait for something that must happen.
const patience = 10 * time.Second

// Server is one fake server. Safe for concurrent use.
type Server struct {
	t  T
	ln net.Listener
	wg sync.WaitGroup

	mu      sync.Mutex // protects what follows
	state   State
	conns   map[*conn]bool // true for sessions, false before they are
	pids    uint32
	queries []string // statements received, in order
	dials   int
	hold    *Hold
	fail    string // SQLSTATE of every answer
	refuse  bool   // connections are refused
	frozen  bool
	changed chan struct{} // closed and replaced with each statement and session
	closed  bool
}

// New starts a server that says st. It ends with the test.
func New(t T, st State) *Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	s := &Server{t: t, ln: ln, state: st, conns: map[*conn]bool{}, changed: make(chan struct{})}
	s.wg.Add(1)
	go s.accept()
	t.Cleanup(s.Close)
	return s
}

// Close drops all connections and joins the server's goroutines. Idempotent.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.ln.Close() // the second time it is closed already
	s.Drop()
	s.wg.Wait()
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// DSN is the connection string for the server.
func (s *Server) DSN() string {
	host, port, _ := net.SplitHostPort(s.Addr()) // a listener's address has both
	return fmt.Sprintf("host=%s port=%s user=u password=secret dbname=d sslmode=disable default_query_exec_mode=simple_protocol", host, port)
}

// Dial connects to the server; it is a watcher.Dial.
func (s *Server) Dial(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.DSN()) }

// Connect dials and fails the test if that fails. The connection is closed with
// the test.
func (s *Server) Connect() *pgx.Conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := s.Dial(ctx)
	if err != nil {
		s.t.Fatalf("connect to fake server: %v", err)
	}
	s.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Set changes what the server says.
func (s *Server) Set(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// Advance moves the position on by n bytes.
func (s *Server) Advance(n uint64) { s.Set(func(st *State) { st.LSN += n }) }

// State returns what the server says.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Crash drops all connections and comes back in another life, saying what change
// leaves.
func (s *Server) Crash(change func(*State)) {
	s.mu.Lock()
	s.state.Start++
	if change != nil {
		change(&s.state)
	}
	s.mu.Unlock()
	s.Drop()
}

// Drop closes all connections from the server's side.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.close()
		delete(s.conns, c)
	}
}

// Refuse says whether new connections are turned away.
func (s *Server) Refuse(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// Fail makes every statement fail with a SQLSTATE; empty ends that.
func (s *Server) Fail(sqlstate string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = sqlstate
}

// Queries is how many statements were received.
func (s *Server) Queries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queries)
}

// Statements returns the statements that were received.
func (s *Server) Statements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.queries...)
}

// Dials is how many sessions were opened.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// Conns is how many sessions are open.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions()
}

func (s *Server) sessions() int {
	n := 0
	for _, session := range s.conns {
		if session {
			n++
		}
	}
	return n
}

// WaitQueries waits until n statements or more were received in all.
func (s *Server) WaitQueries(n int) {
	s.t.Helper()
	s.wait("statements received", n, func() (int, bool) { return len(s.queries), len(s.queries) >= n })
}

// WaitConns waits until n sessions are open.
func (s *Server) WaitConns(n int) {
	s.t.Helper()
	s.wait("open sessions", n, func() (int, bool) { return s.sessions(), s.sessions() == n })
}

func (s *Server) wait(what string, want int, ok func() (int, bool)) {
	s.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		s.mu.Lock()
		have, done := ok()
		changed := s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			s.t.Fatalf("%s: have %d, want %d", what, have, want)
		}
	}
}

// signal tells who waits; s.mu is held.
func (s *Server) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		nc, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.wg.Add(1)
		go s.serve(nc)
	}
}

var errNotSession = errors.New("not a session")

func (s *Server) serve(nc net.Conn) {
	defer s.wg.Done()
	c := &conn{Conn: nc, backend: pgproto3.NewBackend(nc, nc), gone: make(chan struct{}), canceled: make(chan struct{}, 1)}
	defer c.close()
	if !s.remember(c) {
		return
	}
	defer s.forget(c)
	if err := s.open(c); err != nil {
		return
	}
	for {
		msg, err := c.backend.Receive()
		if err != nil {
			return
		}
		s.thaw(c)
		switch msg := msg.(type) {
		case *pgproto3.Query:
			s.answer(c, msg.String)
		case *pgproto3.Terminate:
			return
		default:
			c.prepare(msg)
		}
	}
}

// open does the start of a session.
func (s *Server) open(c *conn) error {
	msg, err := c.backend.ReceiveStartupMessage()
	if err != nil {
		return err
	}
	s.thaw(c)
	if cancel, ok := msg.(*pgproto3.CancelRequest); ok {
		s.cancel(cancel.ProcessID)
		return errNotSession
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.refuse {
		c.backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P03", Message: "the database system is starting up"})
		_ = c.backend.Flush() // the client may be gone
		return errNotSession
	}
	s.pids++
	s.dials++
	c.pid = s.pids
	s.conns[c] = true
	s.signal()
	c.backend.Send(&pgproto3.AuthenticationOk{})
	c.backend.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: s.state.version()})
	c.backend.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	c.backend.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	c.backend.Send(&pgproto3.BackendKeyData{ProcessID: c.pid, SecretKey: []byte{1, 2, 3, 4}})
	c.backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return c.backend.Flush()
}

func (s *Server) cancel(pid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.pid == pid {
			select {
			case c.canceled <- struct{}{}:
			default:
			}
		}
	}
}

func (s *Server) remember(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = false
	}
	return !s.closed
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.signal()
}

// conn is one session.
type conn struct {
	net.Conn
	backend  *pgproto3.Backend
	pid      uint32
	gone     chan struct{} // closed when the session was dropped
	canceled chan struct{} // one for each cancel request
	once     sync.Once
}

func (c *conn) close() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.Conn.Close() // the client may have closed it
	})
}
