package main

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/jackc/pgx/v5"
)

// A witness asks every server again and again, the way the workers reach it. What
// it was answered tells whether a read that failed could have been served.
const (
	witnessEvery   = 50 * time.Millisecond
	witnessTimeout = 300 * time.Millisecond
	// witnessGap is how far apart two answers may be that prove that the
	// server answered in between.
	witnessGap = 250 * time.Millisecond
	// lasting is for how long a server must go on answering to count as one
	// that was there: of a server that crashes, connections end one by one.
	lasting = 200 * time.Millisecond
)

// answer is what a server said.
type answer struct {
	from, to int64 // of the history's clock: asked and answered
	standby  bool
	timeline uint32 // that a client can prove: of the last checkpoint, on a standby
	lsn      uint64
}

// spell is a time during which a server answered every question.
type spell struct{ answers []answer }

func (s *spell) last() *answer { return &s.answers[len(s.answers)-1] }

// beat watches one way to a server.
type beat struct {
	endpoint string // the endpoint it belongs to; empty for a single server
	server   string // its name
	dsn      string

	mu     sync.Mutex // protects spells
	spells []spell
}

// witness has one beat for each server and one for the moving endpoint.
type witness struct {
	rec   *history.Recorder
	beats []*beat
	wg    sync.WaitGroup
}

// newWitness watches until ctx ends; then join must be called.
func newWitness(ctx context.Context, rec *history.Recorder, s *site) *witness {
	w := &witness{rec: rec, beats: []*beat{{endpoint: endpointMoving, dsn: s.primaryDSN(endpointMoving)}}}
	for i, dsn := range s.replicaDSNs() {
		w.beats = append(w.beats, &beat{server: s.Servers()[i].Name(), dsn: dsn})
	}
	for _, b := range w.beats {
		w.wg.Go(func() { w.watch(ctx, b) })
	}
	return w
}

func (w *witness) join() { w.wg.Wait() }

func (w *witness) watch(ctx context.Context, b *beat) {
	tick := time.NewTicker(witnessEvery)
	defer tick.Stop()
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			drop(conn)
		}
	}()
	for ctx.Err() == nil {
		var a answer
		if conn, a = w.look(ctx, b, conn); conn != nil {
			b.note(a)
		} else {
			b.broken()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look asks once. The connection is nil if that failed.
func (w *witness) look(ctx context.Context, b *beat, conn *pgx.Conn) (*pgx.Conn, answer) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	var err error
	a := answer{from: w.rec.Now()}
	if conn == nil {
		if conn, err = pgx.Connect(ctx, b.dsn); err != nil {
			return nil, a
		}
	}
	const query = `select r, case when r then (pg_control_checkpoint()).timeline_id::bigint else 0 end,
		case when r then pg_last_wal_replay_lsn() - '0/0' else 0 end from (select pg_is_in_recovery() r) s`
	var timeline, lsn int64
	if err := conn.QueryRow(ctx, query).Scan(&a.standby, &timeline, &lsn); err != nil {
		drop(conn)
		return nil, a
	}
	a.to, a.timeline, a.lsn = w.rec.Now(), uint32(timeline), uint64(lsn)
	return conn, a
}

// drop closes a connection without a word to a server that may hang.
func drop(conn *pgx.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = conn.Close(ctx) // given up either way
}

func (b *beat) note(a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.spells)
	if n == 0 || !b.spells[n-1].continues(a) {
		b.spells = append(b.spells, spell{})
		n++
	}
	b.spells[n-1].answers = append(b.spells[n-1].answers, a)
}

// continues reports whether an answer belongs to the spell: nothing went wrong in
// between, for all that is known.
func (s *spell) continues(a answer) bool {
	if len(s.answers) == 0 {
		return true
	}
	last := s.last()
	return a.standby == last.standby && a.from-last.to <= int64(witnessGap)
}

// broken ends a spell.
func (b *beat) broken() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.spells); n > 0 && len(b.spells[n-1].answers) > 0 {
		b.spells = append(b.spells, spell{})
	}
}

// wanted is what a read asked for.
type wanted struct {
	from, to int64
	endpoint string
	strong   bool // only a primary will do
	lsn      uint64
	timeline uint32
	seen     sight // the standby that must serve, having lived since then; zero for any

	// proven is when a standby must have had it: while there is no primary,
	// nobody can prove which timeline a standby is on by now.
	proven int64
}

// server returns who could have served a read during all of its time: the primary,
// or a standby that had what was wanted and had been there for some time before.
// Empty is nobody.
func (w *witness) server(r wanted, before time.Duration) string {
	r.proven = w.primarySeen(r.from, before) - int64(before)
	for _, b := range w.beats {
		b.mu.Lock()
		primary := b.primaryFor(r)
		standby := !r.strong && b.endpoint == "" && b.standbyFor(r, before)
		b.mu.Unlock()
		switch {
		case primary:
			return "the primary"
		case standby:
			return "a standby"
		}
	}
	return ""
}

// primarySeen returns when last, at some time, a primary had been answering for long
// enough.
func (w *witness) primarySeen(at int64, long time.Duration) int64 {
	latest := int64(math.MinInt64 / 2)
	for _, b := range w.beats {
		b.mu.Lock()
		for i := range b.spells {
			s := &b.spells[i]
			if len(s.answers) == 0 || s.answers[0].standby {
				continue
			}
			if end := min(s.last().to, at); end-s.answers[0].from >= int64(long) {
				latest = max(latest, end)
			}
		}
		b.mu.Unlock()
	}
	return latest
}

// primaryFor reports whether the beat's way led to a primary all the time.
func (b *beat) primaryFor(r wanted) bool {
	if (b.endpoint == endpointMoving) != (r.endpoint == endpointMoving) {
		return false
	}
	for i := range b.spells {
		if s := &b.spells[i]; s.covers(r.from, r.to) && !s.answers[0].standby {
			return true
		}
	}
	return false
}

// standbyFor reports whether the beat's server was a standby, had been for long
// enough, and covered what was wanted while that could be proven. Where the token
// names a standby only that one counts, in the life that was read; another could
// serve too, once that one has told its position.
func (b *beat) standbyFor(r wanted, before time.Duration) bool {
	since := r.from - int64(before)
	if r.seen.Server != "" {
		if since = min(since, r.seen.At); r.seen.Server != b.server {
			return false
		}
	}
	for i := range b.spells {
		s := &b.spells[i]
		if !s.covers(since, r.to) || !s.answers[0].standby {
			continue
		}
		for k := range s.answers {
			a := &s.answers[k]
			if a.to <= r.proven && a.lsn >= r.lsn && (r.timeline == 0 || a.timeline == r.timeline) {
				return true
			}
		}
	}
	return false
}

func (s *spell) covers(from, to int64) bool {
	return len(s.answers) > 1 && s.answers[0].to <= from && s.last().from >= to+int64(lasting)
}
