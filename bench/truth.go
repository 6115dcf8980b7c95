package main

import (
	"context"
	"errors"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/jackc/pgx/v5"
)

// truth is where every server was at every time, by the millisecond: read on
// connections that no network delays and nobody counts.
type truth struct {
	logs []*positions // the primary first
	stop context.CancelFunc
	done sync.WaitGroup
}

// sample is a position of a server, asked for at begun. It is lsn 0 where the
// server did not answer.
type sample struct {
	begun, received time.Time
	lsn             uint64
}

func (s sample) alive() bool { return s.lsn != 0 }

// watchTruth begins to look at all servers. End it with close.
func watchTruth(servers []*rywtest.Server) *truth {
	ctx, stop := context.WithCancel(context.Background())
	t := &truth{stop: stop}
	for _, s := range servers {
		p := &positions{server: s, port: strconv.Itoa(s.Port()), kick: make(chan struct{}, 1), news: make(chan struct{})}
		t.logs = append(t.logs, p)
		t.done.Go(func() { p.run(ctx) })
	}
	return t
}

func (t *truth) close() {
	t.stop()
	t.done.Wait()
}

// replicas are the logs of the replicas.
func (t *truth) replicas() []*positions { return t.logs[1:] }

// positions is the log of one server.
type positions struct {
	server *rywtest.Server
	port   string
	kick   chan struct{} // asks for a sample now

	mu   sync.Mutex // protects what follows
	all  []sample   // in order of time
	news chan struct{}
}

const lookEvery = time.Millisecond

// run takes samples until ctx ends.
func (p *positions) run(ctx context.Context) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // of no use any more
		}
	}()
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		case <-p.kick:
		}
		s := sample{begun: time.Now()}
		s.lsn, conn = p.ask(ctx, conn)
		s.received = time.Now()
		p.add(s)
	}
}

const whereSQL = `select (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn)::bigint`

// ask returns 0 and no connection where the server does not answer.
func (p *positions) ask(ctx context.Context, conn *pgx.Conn) (uint64, *pgx.Conn) {
	var err error
	if conn == nil {
		if !p.server.Running() {
			return 0, nil
		}
		if conn, err = p.server.Conn(ctx); err != nil {
			return 0, nil
		}
	}
	var lsn int64
	if err := conn.QueryRow(ctx, whereSQL).Scan(&lsn); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx)) // it has failed
		return 0, nil
	}
	return endOfRecord(uint64(lsn)), conn
}

// endOfRecord is an insert position rounded down to where a record can end: not
// behind the header of a page (24 bytes) or of a segment's first page (40).
func endOfRecord(lsn uint64) uint64 {
	const page, segment = 8 << 10, 16 << 20
	switch {
	case lsn%segment == 40:
		return lsn - 40
	case lsn%page == 24:
		return lsn - 24
	}
	return lsn
}

func (p *positions) add(s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, s)
	close(p.news)
	p.news = make(chan struct{})
}

// look asks for a sample without waiting for it.
func (p *positions) look() {
	select {
	case p.kick <- struct{}{}:
	default: // one is asked for already
	}
}

// last returns the newest sample and what is closed when there is a newer one.
func (p *positions) last() (sample, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		return sample{}, p.news
	}
	return p.all[len(p.all)-1], p.news
}

var errNoTruth = errors.New("where the server is cannot be told")

// after returns the first sample begun at t or later, and waits for it if there is
// none yet.
func (p *positions) after(ctx context.Context, t time.Time) (sample, error) {
	for {
		s, news, ok := p.find(t)
		if ok {
			return s, nil
		}
		p.look()
		select {
		case <-news:
		case <-ctx.Done():
			return s, errors.Join(errNoTruth, context.Cause(ctx))
		}
	}
}

// find is after without waiting.
func (p *positions) find(t time.Time) (sample, <-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := sort.Search(len(p.all), func(i int) bool { return !p.all[i].begun.Before(t) })
	if i == len(p.all) {
		return sample{}, p.news, false
	}
	return p.all[i], p.news, true
}

// reached returns when the server was first seen at lsn or beyond, at t or later.
func (p *positions) reached(lsn uint64, t time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := sort.Search(len(p.all), func(i int) bool { return !p.all[i].begun.Before(t) })
	for ; i < len(p.all); i++ {
		if p.all[i].lsn >= lsn {
			return p.all[i].begun, true
		}
	}
	return time.Time{}, false
}

// passed returns when the primary was first seen beyond lsn, which its log begins
// below. Its positions never go back.
func (p *positions) passed(lsn uint64) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := sort.Search(len(p.all), func(i int) bool { return p.all[i].lsn > lsn })
	if i == len(p.all) {
		return time.Time{}, false
	}
	return p.all[i].begun, true
}
