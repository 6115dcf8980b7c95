package rywpgx

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// server speaks as much of PostgreSQL's protocol as these tests need: statements
// as simple queries, and functions called by OID.
type server struct {
	t        *testing.T
	listener net.Listener
	loops    sync.WaitGroup

	mu    sync.Mutex // protects what follows
	lsn   uint64
	calls []string // what was asked for, in order
	// refuse answers a function call instead of the position.
	refuse func() pgproto3.BackendMessage
}

const pidOfServer = 77

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, listener: l, lsn: 0x3000060}
	s.loops.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.loops.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.loops.Wait()
	})
	return s
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range map[string]string{"server_version": "15.0", "standard_conforming_strings": "on", "client_encoding": "UTF8"} {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: pidOfServer, SecretKey: []byte{0, 0, 0, 1}})
	status := byte('I')
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		if b.Flush() != nil {
			return
		}
		m, err := b.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *pgproto3.Query:
			status = s.query(b, m.String, status)
		case *pgproto3.FunctionCall:
			s.call(b, m)
		case *pgproto3.Terminate:
			return
		default:
			s.t.Errorf("have %T", m)
			return
		}
	}
}

func (s *server) query(b *pgproto3.Backend, text string, status byte) byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.Contains(text, "pg_control_system"):
		s.calls = append(s.calls, "sample")
		row(b, "0", fmt.Sprint(s.lsn), "1", "0", "4711", fmt.Sprint(pidOfServer), "1.5", "2.5", "3.5", "8192", "16777216", "0")
		return status
	case text == watcher.CaptureSQL:
		s.calls = append(s.calls, "capture")
		row(b, fmt.Sprint(s.lsn), fmt.Sprint(pidOfServer))
		return status
	}
	if text == "-- ping" { // a pool's, before it uses a connection again
		b.Send(&pgproto3.EmptyQueryResponse{})
		return status
	}
	s.calls = append(s.calls, text)
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "begin":
		status = 'T'
	case "commit", "rollback":
		status = 'I'
		s.lsn += 0x100
	case "select":
		row(b, "1")
		return status
	case "fail":
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "23505", Message: "duplicate"})
		return status
	default:
		s.lsn += 0x100
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte(strings.ToUpper(word))})
	return status
}

func row(b *pgproto3.Backend, values ...string) {
	fields := make([]pgproto3.FieldDescription, len(values))
	data := make([][]byte, len(values))
	for i, v := range values {
		fields[i] = pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25, TypeModifier: -1}
		data[i] = []byte(v)
	}
	b.Send(&pgproto3.RowDescription{Fields: fields})
	b.Send(&pgproto3.DataRow{Values: data})
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
}

func (s *server) call(b *pgproto3.Backend, m *pgproto3.FunctionCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf("call %d", m.Function))
	if s.refuse != nil {
		b.Send(s.refuse())
		return
	}
	b.Send(&pgproto3.FunctionCallResponse{Result: binary.BigEndian.AppendUint64(nil, s.lsn)})
}

// asked returns what was asked for since the last call.
func (s *server) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.calls, ", ")
	s.calls = nil
	return all
}

func (s *server) set(refuse func() pgproto3.BackendMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// pool opens one connection, bound to h.
func (s *server) pool(t *testing.T, h Hooks) *sql.DB {
	t.Helper()
	addr := s.listener.Addr().(*net.TCPAddr)
	cfg, err := pgx.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=u sslmode=disable default_query_exec_mode=simple_protocol", addr.Port))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		if err := c.Bind(h, 0); err != nil {
			t.Fatal(err)
		}
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if err := db.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.asked()
	return db
}

// recorder is hooks with one observer.
type recorder struct {
	floor   bool
	nobody  bool
	noProbe bool
	over    bool // no connection is to be used again

	mu     sync.Mutex // protects events
	events []Event
}

func (r *recorder) Admit(ctx context.Context, conn *pgx.Conn) (*watcher.Probe, error) {
	if r.noProbe {
		return nil, nil
	}
	p := watcher.NewProbe(conn)
	_, err := p.Take(ctx)
	return p, err
}

func (r *recorder) Admitted(*pgx.Conn) bool { return !r.over }

func (r *recorder) Pure(text string) bool { return strings.HasPrefix(text, "select") }

func (r *recorder) Observer(context.Context) Observer {
	if r.nobody {
		return nil
	}
	return r
}

func (r *recorder) Floor() bool { return r.floor }

func (r *recorder) Report(e Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
}

func (r *recorder) take(t *testing.T, want Outcome) Event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.events
	r.events = nil
	if len(e) != 1 || e[0].Outcome != want {
		t.Fatalf("have %+v, want one event that is %s", e, want)
	}
	return e[0]
}

func exec(t *testing.T, db *sql.DB, text string) error {
	t.Helper()
	_, err := db.ExecContext(t.Context(), text)
	return err
}

func (s *server) expect(t *testing.T, want string) {
	t.Helper()
	if have := s.asked(); have != want {
		t.Errorf("server was asked %q, want %q", have, want)
	}
}
