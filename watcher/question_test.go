package watcher

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/token"
)

func bytes8(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// record is a row in binary format.
func record(columns ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(columns)))
	for _, c := range columns {
		b = binary.BigEndian.AppendUint32(b, 23)
		if c == nil {
			b = binary.BigEndian.AppendUint32(b, 1<<32-1)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(c)))
		b = append(b, c...)
	}
	return b
}

var int4 = []byte{0, 0, 0, 7}

// on returns a probe whose connection has said s.
func on(s Sample) *Probe {
	return &Probe{last: s, geom: walGeometry{block: 8192, segment: 16 << 20}}
}

func TestCallsOnAPrimary(t *testing.T) {
	was := Sample{Position: token.Position{Timeline: 3, LSN: 1}, System: 4, Incarnation: 5}
	p := on(was)
	q := p.Question()
	s, err := p.Answer(q, [][]byte{bytes8(0x2000018)}, nil, 9)
	if err != nil || s.Position != (token.Position{Timeline: 3, LSN: 0x2000000}) || s.System != 4 || s.Incarnation != 5 || s.Begun != 9 || s.Received == 0 {
		t.Errorf("have %+v, %v", s, err)
	}
	if p.Last() != s {
		t.Errorf("last: have %+v", p.Last())
	}
}

// standbyRow is the answer to a standby's calls, which tell its timeline by the last
// restartpoint, by the control file's minimum of recovery, and by the receiver.
func standbyRow(lsn uint64, checkpoint, recovery, receiver []byte) [][]byte {
	null := []byte(nil)
	return [][]byte{
		{1},
		bytes8(lsn),
		record(bytes8(1), bytes8(1), []byte("name"), checkpoint, int4),
		record(bytes8(1), recovery, bytes8(1), bytes8(1), int4),
		record(int4, null, null, null, null, null, receiver, null),
	}
}

func timelineOf(n byte) []byte { return []byte{0, 0, 0, n} }

func TestCallsOnAStandby(t *testing.T) {
	was := Sample{Position: token.Position{Timeline: 3, LSN: 1}, Standby: true, System: 4, Incarnation: 5}
	for name, c := range map[string]struct {
		row       [][]byte
		timeline  uint32
		streaming bool
	}{
		"restartpoint":     {standbyRow(0x2000018, timelineOf(7), timelineOf(6), nil), 7, false},
		"end of recovery":  {standbyRow(0x2000018, timelineOf(6), timelineOf(7), nil), 7, false},
		"receiver":         {standbyRow(0x2000018, timelineOf(5), timelineOf(6), timelineOf(7)), 7, true},
		"receiver behind":  {standbyRow(0x2000018, timelineOf(7), timelineOf(7), timelineOf(6)), 7, true},
		"there is no such": {append(standbyRow(0x2000018, timelineOf(7), timelineOf(6), nil)[:4], nil), 7, false},
	} {
		p := on(was)
		s, err := p.Answer(p.Question(), c.row, nil, 9)
		if err != nil || s.Position != (token.Position{Timeline: c.timeline, LSN: 0x2000018}) || !s.Standby || s.Streaming != c.streaming {
			t.Errorf("%s: have %+v, %v", name, s, err)
		}
	}
	p := on(was)
	row := standbyRow(1, int4, int4, int4)
	row[0] = []byte{0}
	if _, err := p.Answer(p.Question(), row, nil, 9); !errors.Is(err, errPromoted) {
		t.Errorf("have %v, want %v", err, errPromoted)
	}
	if q := p.Question(); q.SQL != sampleSQL {
		t.Errorf("behind a promotion: have %+v, want everything to be asked", q)
	}
}

// Whatever is not what was asked for is an error, and the next question is in SQL.
func TestAnswersThatAreNone(t *testing.T) {
	replay := bytes8(0x2000018)
	with := func(i int, value []byte) [][]byte {
		row := standbyRow(0x2000018, int4, int4, int4)
		row[i] = value
		return row
	}
	for name, c := range map[string]struct {
		standby bool
		row     [][]byte
		err     error
	}{
		"an error":           {false, nil, errors.New("no")},
		"nothing":            {false, nil, nil},
		"NULL":               {false, [][]byte{nil}, nil},
		"four bytes":         {false, [][]byte{int4}, nil},
		"two values":         {false, [][]byte{replay, replay}, nil},
		"standby, one value": {true, [][]byte{{1}}, nil},
		"standby, NULL":      {true, with(1, nil), nil},
		"standby, no record": {true, with(2, nil), nil},
		"a short record":     {true, with(2, record(int4, int4, int4)), nil},
		"a record cut short": {true, with(2, record(int4, int4, int4, int4)[:40]), nil},
		"another type":       {true, with(2, record(int4, int4, int4, replay)), nil},
		"no second record":   {true, with(3, nil), nil},
		"a bad receiver":     {true, with(4, record(int4)), nil},
	} {
		p := on(Sample{Standby: c.standby, Incarnation: 1})
		was := p.Last()
		if s, err := p.Answer(p.Question(), c.row, c.err, 9); err == nil || s != (Sample{}) || p.Last() != was {
			t.Errorf("%s: have %+v, %v, last %+v", name, s, err, p.Last())
		}
		if q := p.Question(); q.SQL == "" || q.SQL == sampleSQL {
			t.Errorf("%s: have %+v, want a short form in SQL", name, q)
		}
	}
}

func TestEverythingIsAskedBehindAPooler(t *testing.T) {
	for _, s := range []Sample{{}, {Incarnation: 1, Pooled: true}, {Incarnation: 1, Pooled: true, Standby: true}} {
		if q := on(s).Question(); q.SQL != sampleSQL {
			t.Errorf("%+v: have %+v", s, q)
		}
	}
}

func FuzzBinaryTimeline(f *testing.F) {
	f.Add(record(int4, int4, int4, int4))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := binaryTimeline(b, 4); err != nil && n != 0 {
			t.Errorf("have %d and %v", n, err)
		}
	})
}
