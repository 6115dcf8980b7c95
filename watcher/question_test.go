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

func TestCallsOnAStandby(t *testing.T) {
	p := on(Sample{Position: token.Position{Timeline: 3, LSN: 1}, Standby: true, System: 4, Incarnation: 5})
	row := [][]byte{{1}, bytes8(0x2000018), record(bytes8(1), bytes8(1), []byte("name"), int4, int4)}
	s, err := p.Answer(p.Question(), row, nil, 9)
	if err != nil || s.Position != (token.Position{Timeline: 7, LSN: 0x2000018}) || !s.Standby {
		t.Errorf("have %+v, %v", s, err)
	}
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
	for name, c := range map[string]struct {
		standby bool
		row     [][]byte
		err     error
	}{
		"an error":            {false, nil, errors.New("no")},
		"nothing":             {false, nil, nil},
		"NULL":                {false, [][]byte{nil}, nil},
		"four bytes":          {false, [][]byte{int4}, nil},
		"two values":          {false, [][]byte{replay, replay}, nil},
		"standby, NULL":       {true, [][]byte{{1}, nil, record(int4, int4, int4, int4)}, nil},
		"standby, one value":  {true, [][]byte{{1}}, nil},
		"standby, no record":  {true, [][]byte{{1}, replay, nil}, nil},
		"standby, a short":    {true, [][]byte{{1}, replay, record(int4, int4, int4)}, nil},
		"standby, a cut":      {true, [][]byte{{1}, replay, record(int4, int4, int4, int4)[:40]}, nil},
		"standby, other type": {true, [][]byte{{1}, replay, record(int4, int4, int4, replay)}, nil},
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
		if n, err := binaryTimeline(b); err != nil && n != 0 {
			t.Errorf("have %d and %v", n, err)
		}
	})
}
