package watcher

import (
	"errors"
	"strconv"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// standbySQL is the sample statement's short form for a connection that is known
// to be to a standby. The timeline is asked for every time: a standby that follows
// a promotion elsewhere keeps its connections.
const standbySQL = `select pg_is_in_recovery()::int, pg_last_wal_replay_lsn() - '0/0'::pg_lsn,
 (select timeline_id from pg_control_checkpoint()), pg_backend_pid()`

// Errors of answers to a short form that what it left out does not hold for.
var (
	errPromoted       = errors.New("standby was promoted meanwhile")
	errAnotherProcess = errors.New("answered by another server process than the connection was opened to")
)

// Question is the shortest statement whose one row tells the position on this
// connection, for callers who send it themselves, together with something else.
// Answer takes the row, in text format. What a short form leaves out was told by
// the connection's first sample and holds for as long as the connection does;
// behind a connection pooler nothing does, and the whole statement is asked.
func (p *Probe) Question() string {
	switch {
	case p.last.Incarnation == 0 || p.last.Pooled:
		return sampleSQL
	case p.last.Standby:
		return standbySQL
	}
	return CaptureSQL
}

// Answer makes a sample of the row of Question, which was sent at begun.
func (p *Probe) Answer(row [][]byte, begun mono.Instant) (Sample, error) {
	switch len(row) {
	case 2:
		return p.shortPrimary(row, begun)
	case 4:
		return p.shortStandby(row, begun)
	}
	s, err := p.parse(row)
	if err != nil {
		return Sample{}, err
	}
	s.Begun, s.Received = begun, mono.Now()
	p.last = s
	return s, nil
}

func (p *Probe) shortPrimary(row [][]byte, begun mono.Instant) (Sample, error) {
	s, err := p.Captured(row, begun)
	if err == nil && s.Pooled {
		return Sample{}, errAnotherProcess
	}
	return s, err
}

func (p *Probe) shortStandby(row [][]byte, begun mono.Instant) (Sample, error) {
	var f fields
	standby, lsn, timeline := f.uint(row[0]), f.uint(row[1]), f.uint(row[2])
	switch {
	case f.err != nil:
		return Sample{}, f.err
	case string(row[3]) != strconv.Itoa(int(p.conn.PgConn().PID())):
		p.last.Pooled = true
		return Sample{}, errAnotherProcess
	case standby == 0:
		p.last.Incarnation = 0 // ask for everything next time
		return Sample{}, errPromoted
	}
	s := p.last
	s.Position = token.Position{Timeline: uint32(timeline), LSN: token.LSN(lsn)}
	s.Begun, s.Received = begun, mono.Now()
	p.last = s
	return s, nil
}
