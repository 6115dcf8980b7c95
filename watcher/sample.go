package watcher

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Sample is what one position query said of a server.
type Sample struct {
	// Position is the insert position of a primary, rounded down to where a
	// record can end, or the replay position of a standby. A standby's timeline
	// is the latest that it has given evidence of: it may have begun to replay a
	// later one, unless Streaming.
	Position token.Position
	// Streaming says that a standby told from which timeline it receives WAL: its
	// receiver is connected, and the role may see that (pg_monitor).
	Streaming bool
	// Standby is pg_is_in_recovery(). It alone tells the role: the replay
	// position is neither NULL on every primary nor frozen on every standby.
	Standby bool
	// Paused says that replay is paused or about to be.
	Paused bool
	// System is the cluster's system identifier.
	System uint64
	// Incarnation names this life of this server.
	Incarnation token.Incarnation
	// Pooled says that the server process that answered is not the one that the
	// connection was opened to: there is a connection pooler in between.
	Pooled bool
	// Begun and Received are when the query was sent and its answer was here.
	Begun, Received mono.Instant
}

// The sample statement runs on both roles; each position function is an error or
// NULL on the other. Source: PostgreSQL manual, 9.28.3 (backup control
// functions), 9.28.4 (recovery control functions), 9.27.11 (control data).
//
// A standby tells its timeline in three places, none of which is ahead of what it
// replays by more than it asked its upstream for: by its last restartpoint; by the
// last page that replay made it write, which any role may see and which follows a
// promotion within a second on a server that is written to; and at once, to
// pg_monitor, by what it receives (facts_test, "A promotion").
//
// The insert position is read, not pg_current_wal_lsn(): with asynchronous
// commit the latter is behind the own commit.
//
// Functions are called instead of reading the views around them, and the one
// setting is not looked up in pg_settings: that made the statement ten times
// slower.
const sampleSQL = `select r::int,
 case when r then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn,
 case when r then ` + replayedTimeline + `
  else ` + writtenTimeline + ` end,
 case when r then (pg_get_wal_replay_pause_state() <> 'not paused')::int else 0 end,
 (pg_control_system()).system_identifier,
 pg_backend_pid(),
 extract(epoch from pg_postmaster_start_time()),
 extract(epoch from (pg_stat_get_wal()).stats_reset),
 extract(epoch from (pg_stat_get_archiver()).stats_reset),
 current_setting('wal_block_size'),
 pg_size_bytes(current_setting('wal_segment_size')),
 case when r then ` + receivedTimeline + ` end
 from (select pg_is_in_recovery() as r) s`

const (
	sampleColumns = 12

	replayedTimeline = `greatest((pg_control_checkpoint()).timeline_id, (pg_control_recovery()).min_recovery_end_timeline)`
	writtenTimeline  = `('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int`
	receivedTimeline = `(pg_stat_get_wal_receiver()).received_tli`
)

// CaptureSQL is the sample statement's short form for a connection that is known
// to be to a primary, which it stays for as long as the connection lives. It may
// stand behind "commit;" in one message. [Probe.Captured] reads its row.
const CaptureSQL = `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn, pg_backend_pid()`

const minServerVersion = 14 // pg_stat_wal, pg_get_wal_replay_pause_state()

// Errors of a sample. Each is wrapped with the node's name.
var (
	// ErrUnsupported is returned for servers older than PostgreSQL 14.
	ErrUnsupported = errors.New("server version is not supported")
	errNoPosition  = errors.New("server has no position yet")
)

// Probe takes samples on one connection. It is not safe for concurrent use, and
// the connection must not be used for anything else meanwhile.
type Probe struct {
	conn  *pgx.Conn
	epoch int32
	last  Sample // of this connection; zero before the first
	geom  walGeometry
	inSQL bool // the server does not answer a Question's calls
}

// NewProbe returns a probe on a connection that stays the caller's.
func NewProbe(conn *pgx.Conn) *Probe { return &Probe{conn: conn} }

// Last is the newest sample taken on the connection; zero before the first.
func (p *Probe) Last() Sample { return p.last }

type walGeometry struct{ block, segment uint64 }

// roundDown turns an insert position into where the last record ended. On the
// edge of a page the insert position is past the next page's header, where no
// record can end and an idle standby will never get to.
func (g walGeometry) roundDown(lsn uint64) uint64 {
	const longHeader, shortHeader = 40, 24
	switch {
	case g.segment > 0 && lsn%g.segment == longHeader:
		return lsn - longHeader
	case g.block > 0 && lsn%g.block == shortHeader:
		return lsn - shortHeader
	}
	return lsn
}

// Take runs one position query.
func (p *Probe) Take(ctx context.Context) (Sample, error) {
	if p.last.Incarnation != 0 && !p.last.Standby && !p.last.Pooled {
		return p.takeShort(ctx)
	}
	begun := mono.Now()
	row, err := p.query(ctx, sampleSQL)
	if err != nil {
		return Sample{}, err
	}
	s, err := p.parse(row)
	if err != nil {
		return Sample{}, err
	}
	s.Begun, s.Received = begun, mono.Now()
	p.last = s
	return s, nil
}

func (p *Probe) takeShort(ctx context.Context) (Sample, error) {
	begun := mono.Now()
	row, err := p.query(ctx, CaptureSQL)
	if err != nil {
		return Sample{}, err
	}
	s, err := p.Captured(row, begun)
	if err == nil && s.Pooled {
		return p.Take(ctx) // no longer the connection it was
	}
	return s, err
}

// Captured makes a sample of the row of CaptureSQL, which was sent at begun on a
// connection that an earlier sample found to be to a primary.
func (p *Probe) Captured(row [][]byte, begun mono.Instant) (Sample, error) {
	lsn, err := strconv.ParseUint(string(row[0]), 10, 64)
	if err != nil {
		return Sample{}, fmt.Errorf("position: %w", err)
	}
	s := p.last
	s.Pooled = string(row[1]) != strconv.Itoa(int(p.conn.PgConn().PID()))
	s.Position.LSN = token.LSN(p.geom.roundDown(lsn))
	s.Begun, s.Received = begun, mono.Now()
	p.last = s
	return s, nil
}

func (p *Probe) query(ctx context.Context, sql string) ([][]byte, error) {
	res, err := p.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	return oneRow(res)
}

func oneRow(res []*pgconn.Result) ([][]byte, error) {
	if len(res) != 1 || len(res[0].Rows) != 1 {
		return nil, fmt.Errorf("position query: have %d results, want one row", len(res))
	}
	return res[0].Rows[0], nil
}

func (p *Probe) parse(row [][]byte) (Sample, error) {
	if len(row) != sampleColumns {
		return Sample{}, fmt.Errorf("%w: %d columns, want %d", errBadAnswer, len(row), sampleColumns)
	}
	if row[1] == nil {
		return Sample{}, errNoPosition
	}
	var f fields
	s := Sample{
		Standby: f.uint(row[0]) == 1,
		Paused:  f.uint(row[3]) == 1,
		System:  f.uint(row[4]),
		Pooled:  string(row[5]) != strconv.Itoa(int(p.conn.PgConn().PID())),
	}
	lsn := f.uint(row[1])
	p.geom = walGeometry{block: f.uint(row[9]), segment: f.uint(row[10])}
	if !s.Standby {
		lsn = p.geom.roundDown(lsn)
	}
	s.Position = token.Position{Timeline: uint32(f.uint(row[2])), LSN: token.LSN(lsn)}
	s.receives(uint32(f.optional(row[11])))
	if f.err != nil {
		return Sample{}, fmt.Errorf("position query: %w", f.err)
	}
	s.Incarnation = incarnation(row[4], row[6], row[7], row[8])
	return s, nil
}

// receives takes up the timeline that a standby receives, if it told.
func (s *Sample) receives(timeline uint32) {
	s.Streaming = timeline != 0
	s.Position.Timeline = max(s.Position.Timeline, timeline)
}

// incarnation hashes what changes with every life of a server. An administrator
// who resets the statistics changes it too, which is the safe side.
func incarnation(parts ...[]byte) token.Incarnation {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{'|'})
	}
	return token.Incarnation(max(1, binary.BigEndian.Uint64(h.Sum(nil))))
}

// fields converts columns and keeps the first error.
type fields struct{ err error }

func (f *fields) uint(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil && f.err == nil {
		f.err = err
	}
	return n
}

// optional is uint with 0 for NULL.
func (f *fields) optional(b []byte) uint64 {
	if b == nil {
		return 0
	}
	return f.uint(b)
}
