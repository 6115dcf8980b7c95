package fakepg

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// State is what a server says of itself.
type State struct {
	Standby, Paused bool
	LSN             uint64
	// NoPosition makes the position NULL.
	NoPosition bool
	Timeline   uint32
	System     uint64
	// Start and Resets stand for the times of the postmaster's start and of the
	// last statistics reset.
	Start, Resets int
	// Pooled makes pg_backend_pid() another one than the protocol announced.
	Pooled         bool
	Block, Segment uint64
	// Version is server_version; empty is 15.18.
	Version string
	// Received is the timeline that a standby tells to receive; zero is NULL.
	Received uint32
	// History is the content of the timeline's history file. Empty: the role may not
	// ask for it.
	History string
}

// System is the system identifier of PrimaryAt and StandbyAt.
const System = 7_000_000_000_000_000_001

// PrimaryAt is a primary on timeline 1 at the given position.
func PrimaryAt(lsn uint64) State {
	return State{LSN: lsn, Timeline: 1, System: System, Start: 1, Resets: 1, Block: 8192, Segment: 16 << 20}
}

// StandbyAt is a standby on timeline 1 at the given position. Each standby of a
// test needs a start of its own.
func StandbyAt(start int, lsn uint64) State {
	st := PrimaryAt(lsn)
	st.Standby, st.Start = true, start
	return st
}

func (st *State) version() string {
	if st.Version == "" {
		return "15.18"
	}
	return st.Version
}

// sampleRow is the answer to the watcher's full position query.
func (st *State) sampleRow(pid uint32) [][]byte {
	lsn := []byte(strconv.FormatUint(st.LSN, 10))
	if st.NoPosition {
		lsn = nil
	}
	return [][]byte{
		number(st.Standby), lsn, text(st.Timeline), number(st.Paused), text(st.System), text(st.backendPID(pid)),
		fmt.Appendf(nil, "%d.000001", 1_700_000_000+st.Start), fmt.Appendf(nil, "%d.5", 1_600_000_000+st.Resets),
		fmt.Appendf(nil, "%d.7", 1_600_000_000+st.Resets), text(st.Block), text(st.Segment),
		orNull(st.Received),
	}
}

// captureRow is the answer to the short one.
func (st *State) captureRow(pid uint32) [][]byte {
	return [][]byte{text(st.LSN), text(st.backendPID(pid))}
}

func (st *State) backendPID(pid uint32) uint32 {
	if st.Pooled {
		return pid + 1_000_000
	}
	return pid
}

func text[T uint32 | uint64](n T) []byte { return strconv.AppendUint(nil, uint64(n), 10) }

func orNull(n uint32) []byte {
	if n == 0 {
		return nil
	}
	return text(n)
}

func number(b bool) []byte {
	if b {
		return []byte("1")
	}
	return []byte("0")
}

// answer answers a statement with what the server's state was when it arrived,
// which is the oldest answer that it may get.
func (s *Server) answer(c *conn, sql string) {
	s.mu.Lock()
	s.queries = append(s.queries, sql)
	st, fail, hold := s.state, s.fail, s.hold
	s.signal()
	s.mu.Unlock()
	if hold != nil && strings.Contains(sql, hold.part) {
		switch hold.wait(c) {
		case dropped:
			return
		case canceled:
			fail = "57014"
		}
	}
	switch {
	case fail != "":
		c.backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: fail, Message: "as told"})
	case strings.HasPrefix(sql, "TIMELINE_HISTORY") && st.History == "":
		c.backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42501", Message: "as told"})
	case strings.HasPrefix(sql, "TIMELINE_HISTORY"):
		c.row([][]byte{[]byte("x.history"), []byte(st.History)})
	case strings.Contains(sql, "pg_control_system()"):
		c.row(st.sampleRow(c.pid))
	case strings.Contains(sql, "pg_current_wal_insert_lsn()"):
		c.row(st.captureRow(c.pid))
	default:
		tag, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
		c.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(strings.ToUpper(tag))})
	}
	c.backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	_ = c.backend.Flush() // the client may be gone: the next Receive tells
}

// prepare answers what preparing a statement takes; none is ever executed.
func (c *conn) prepare(msg pgproto3.FrontendMessage) {
	switch msg.(type) {
	case *pgproto3.Parse:
		c.backend.Send(&pgproto3.ParseComplete{})
	case *pgproto3.Describe:
		c.backend.Send(&pgproto3.ParameterDescription{})
		c.backend.Send(&pgproto3.NoData{})
	case *pgproto3.Close:
		c.backend.Send(&pgproto3.CloseComplete{})
	case *pgproto3.Sync:
		c.backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = c.backend.Flush() // the client may be gone: the next Receive tells
	}
}

func (c *conn) row(values [][]byte) {
	fields := make([]pgproto3.FieldDescription, len(values))
	for i := range fields {
		fields[i] = pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}
	}
	c.backend.Send(&pgproto3.RowDescription{Fields: fields})
	c.backend.Send(&pgproto3.DataRow{Values: values})
	c.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
}
