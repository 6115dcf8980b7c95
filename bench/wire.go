package main

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// tap is a proxy before a server that counts the position queries in what passes.
type tap struct {
	*proxy.Proxy
	dsn       string
	questions atomic.Int64
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

// look counts a message that holds a position query, and lets every message pass.
func (t *tap) look(_ byte, payload []byte) bool {
	for _, function := range positionFunctions {
		if bytes.Contains(payload, function) {
			t.questions.Add(1)
			break
		}
	}
	return false
}
