package watcher

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Question is what asks a server for its position in the cheapest way that serves
// on a connection, for callers who send it themselves together with something
// else. Its answer is a row of values.
type Question struct {
	// Calls are built-in functions without arguments, by OID. Each is called by a
	// FunctionCall message with a result in binary format; the results are the row.
	// Nothing is parsed or planned: on the machine where it was measured a call took
	// the server 4 µs, the same as a statement 35 µs.
	Calls []uint32
	// SQL, when there are no calls, is a statement whose one row, in text format, is
	// the row.
	SQL string
}

// The OIDs of built-in functions are the same in all versions (PostgreSQL's
// src/include/catalog/pg_proc.dat). A server that is not quite PostgreSQL may
// refuse them, and is asked in SQL from then on.
var (
	primaryCalls = []uint32{2852} // pg_current_wal_insert_lsn
	standbyCalls = []uint32{
		3810, 3821, // pg_is_in_recovery, pg_last_wal_replay_lsn
		3442, 3443, 3317, // pg_control_checkpoint, pg_control_recovery, pg_stat_get_wal_receiver
	}
)

// Where their rows tell a timeline, counted from 1.
const (
	checkpointTimeline = 4 // pg_control_checkpoint().timeline_id
	recoveryTimeline   = 2 // pg_control_recovery().min_recovery_end_timeline
	receiverTimeline   = 7 // pg_stat_get_wal_receiver().received_tli
)

// standbySQL is the sample statement's short form for a connection that is known
// to be to a standby. The timeline is asked for every time: a standby that follows
// a promotion elsewhere keeps its connections.
const standbySQL = `select pg_is_in_recovery()::int, pg_last_wal_replay_lsn() - '0/0'::pg_lsn,
 ` + replayedTimeline + `, pg_backend_pid(), ` + receivedTimeline

// Errors of answers to a short form that what it left out does not hold for.
var (
	errPromoted       = errors.New("standby was promoted meanwhile")
	errAnotherProcess = errors.New("answered by another server process than the connection was opened to")
	errBadAnswer      = errors.New("answer is not what was asked for")
)

// Question returns what to ask next on the probe's connection. Whatever it leaves
// out was told by the connection's first sample and holds for as long as the
// connection does; behind a connection pooler nothing does, and everything is
// asked.
func (p *Probe) Question() Question {
	switch {
	case p.last.Incarnation == 0 || p.last.Pooled:
		return Question{SQL: sampleSQL}
	case p.last.Standby && p.inSQL:
		return Question{SQL: standbySQL}
	case p.last.Standby:
		return Question{Calls: standbyCalls}
	case p.inSQL:
		return Question{SQL: CaptureSQL}
	}
	return Question{Calls: primaryCalls}
}

// Answer makes a sample of the answer to q, which was sent at begun and failed
// with err, if that is not nil.
func (p *Probe) Answer(q Question, row [][]byte, err error, begun mono.Instant) (Sample, error) {
	s := p.last
	if err == nil {
		s, err = p.understand(q, row)
	}
	if err != nil {
		p.inSQL = p.inSQL || len(q.Calls) > 0 && !errors.Is(err, errPromoted)
		return Sample{}, err
	}
	s.Begun, s.Received = begun, mono.Now()
	p.last = s
	return s, nil
}

// understand returns the sample of a row, without its times.
func (p *Probe) understand(q Question, row [][]byte) (Sample, error) {
	switch {
	case len(q.Calls) == len(primaryCalls) && len(row) == len(q.Calls):
		lsn, err := binaryLSN(row[0])
		return p.onPrimary(lsn), err
	case len(q.Calls) == len(standbyCalls) && len(row) == len(q.Calls):
		return p.calledStandby(row)
	case q.SQL == CaptureSQL && len(row) == 2:
		return p.askedPrimary(row)
	case q.SQL == standbySQL && len(row) == 5:
		return p.askedStandby(row)
	case q.SQL == sampleSQL:
		return p.parse(row)
	}
	return Sample{}, fmt.Errorf("%w: %d values", errBadAnswer, len(row))
}

func binaryLSN(value []byte) (token.LSN, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: a position of %d bytes", errBadAnswer, len(value))
	}
	return token.LSN(binary.BigEndian.Uint64(value)), nil
}

func (p *Probe) onPrimary(insert token.LSN) Sample {
	s := p.last
	s.Position.LSN = token.LSN(p.geom.roundDown(uint64(insert)))
	return s
}

func (p *Probe) askedPrimary(row [][]byte) (Sample, error) {
	var f fields
	lsn := f.uint(row[0])
	if err := p.sameProcess(row[1]); err != nil {
		return Sample{}, err
	}
	return p.onPrimary(token.LSN(lsn)), f.err
}

func (p *Probe) calledStandby(row [][]byte) (Sample, error) {
	lsn, err := binaryLSN(row[1])
	if err != nil {
		return Sample{}, err
	}
	checkpoint, err1 := binaryTimeline(row[2], checkpointTimeline)
	recovery, err2 := binaryTimeline(row[3], recoveryTimeline)
	received, err3 := uint32(0), error(nil)
	if row[4] != nil { // there is a receiver
		received, err3 = binaryTimeline(row[4], receiverTimeline)
	}
	if err := cmp.Or(err1, err2, err3); err != nil {
		return Sample{}, err
	}
	return p.onStandby(string(row[0]) == "\x01", lsn, max(checkpoint, recovery), received)
}

// binaryTimeline reads a column of a row in binary format: the number of columns,
// then each one's type, length and value. NULL is 0.
func binaryTimeline(record []byte, column int) (uint32, error) {
	const int4, null = 23, -1
	if len(record) >= 4 && int64(binary.BigEndian.Uint32(record)) >= int64(column) {
		rest := record[4:]
		for i := 1; len(rest) >= 8; i++ {
			kind, size := binary.BigEndian.Uint32(rest), int64(int32(binary.BigEndian.Uint32(rest[4:])))
			rest = rest[8:]
			if i == column && kind == int4 && size == null {
				return 0, nil
			}
			size = max(size, 0)
			if size > int64(len(rest)) {
				break
			}
			if i == column {
				if kind == int4 && size == 4 {
					return binary.BigEndian.Uint32(rest), nil
				}
				break
			}
			rest = rest[size:]
		}
	}
	return 0, fmt.Errorf("%w: no timeline in column %d", errBadAnswer, column)
}

func (p *Probe) askedStandby(row [][]byte) (Sample, error) {
	var f fields
	standby, lsn, timeline := f.uint(row[0]), f.uint(row[1]), f.uint(row[2])
	received := f.optional(row[4])
	if err := p.sameProcess(row[3]); err != nil {
		return Sample{}, err
	}
	if f.err != nil {
		return Sample{}, f.err
	}
	return p.onStandby(standby == 1, token.LSN(lsn), uint32(timeline), uint32(received))
}

func (p *Probe) onStandby(standby bool, replay token.LSN, timeline, received uint32) (Sample, error) {
	if !standby {
		p.last.Incarnation = 0 // everything is asked next time
		return Sample{}, errPromoted
	}
	s := p.last
	s.Position = token.Position{Timeline: timeline, LSN: replay}
	s.receives(received)
	return s, nil
}

func (p *Probe) sameProcess(pid []byte) error {
	if string(pid) == strconv.Itoa(int(p.conn.PgConn().PID())) {
		return nil
	}
	p.last.Pooled = true
	return errAnotherProcess
}
