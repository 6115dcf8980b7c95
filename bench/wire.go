package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// tap is a proxy before a server that counts statements, and the position queries
// among them, in what passes.
type tap struct {
	*proxy.Proxy
	dsn        string
	questions  atomic.Int64
	statements atomic.Int64
	prepared   sync.Map // names of statements that ask for a position
}

func newTap(s *rywtest.Server, delay time.Duration) (*tap, error) {
	p, err := proxy.New(net.JoinHostPort(s.Host(), strconv.Itoa(s.Port())), proxy.Options{Delay: delay})
	if err != nil {
		return nil, err
	}
	t := &tap{Proxy: p}
	if t.dsn, err = via(s, p.Addr()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.CutOn(t.look)
	return t, nil
}

var positionFunctions = [][]byte{[]byte("pg_current_wal_insert_lsn"), []byte("pg_last_wal_replay_lsn")}

// The same functions when they are called without SQL, one of them in each
// question, by their OIDs in PostgreSQL's pg_proc.dat.
const (
	oidInsertLSN = 2852
	oidReplayLSN = 3821
)

// look counts a message that runs a statement, and one that holds a position query,
// and lets every message pass (PostgreSQL manual, 55.7). What is prepared counts
// when it is executed; pgx names a statement by its text.
func (t *tap) look(kind byte, payload []byte) bool {
	switch kind {
	case 'Q':
		t.statements.Add(1)
		if asksPosition(payload) {
			t.questions.Add(1)
		}
	case 'P':
		if name, text, _ := bytes.Cut(payload, []byte{0}); len(name) > 0 && asksPosition(text) {
			t.prepared.Store(string(name), true)
		}
	case 'B':
		_, rest, _ := bytes.Cut(payload, []byte{0}) // the portal's name
		name, _, _ := bytes.Cut(rest, []byte{0})
		if _, asks := t.prepared.Load(string(name)); asks {
			t.questions.Add(1)
		}
	case 'E':
		t.statements.Add(1)
	case 'F':
		if oid := oidOf(payload); oid == oidInsertLSN || oid == oidReplayLSN {
			t.statements.Add(1)
			t.questions.Add(1)
		}
	}
	return false
}

func asksPosition(text []byte) bool {
	for _, function := range positionFunctions {
		if bytes.Contains(text, function) {
			return true
		}
	}
	return false
}

// oidOf is the function that a FunctionCall message calls.
func oidOf(payload []byte) uint32 {
	if len(payload) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(payload)
}
