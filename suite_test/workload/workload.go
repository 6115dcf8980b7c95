// Package workload makes many sessions write and read versioned rows at the same
// time, each carrying nothing but the text of its token, and records what they
// saw for package history to judge.
package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// Answer is what a target said of one operation.
type Answer struct {
	Version int64
	Server  string
	Replica bool
	Token   string // the session's token afterwards
	Detail  any    // whatever the target has to tell to Options.Each
}

// Target is an application under load. Key numbers a row that exists. Token is
// what the session carries; a target without tokens ignores it and returns "".
type Target interface {
	Write(ctx context.Context, token string, key int64) (Answer, error)
	Read(ctx context.Context, token string, key int64) (Answer, error)
}

// Options say how much is done. All counts must be positive.
type Options struct {
	Sessions   int
	Operations int     // in all
	Keys       int     // rows of each session, which it alone writes
	FirstKey   int64   // rows are numbered from here
	Writes     float64 // share of operations that write
	Elsewhere  float64 // share of reads that are of other sessions' rows
	Handover   float64 // share of operations that hand the token to a new session
	Seed       uint64

	// Lasting is the time after which no operation begins; zero is no limit.
	Lasting time.Duration
	// Think is the mean of the pauses between a session's operations, which are
	// distributed exponentially; zero is no pause.
	Think time.Duration
	// WriteEvery is the time between two writes of all sessions together, which
	// then come by the clock and not by their share; zero is by share.
	WriteEvery time.Duration
	// JustWritten has a session read, of its own rows, the one it wrote last.
	JustWritten bool
	// Each, if not nil, is told of every operation that has ended, in the
	// goroutine of its session.
	Each func(Done)
}

// Done is an operation that has ended.
type Done struct {
	Session      int
	Write        bool
	Key          int64
	Began, Ended time.Time
	Answer       Answer
	Err          error
}

// Stats counts what happened, as the answers tell it.
type Stats struct {
	Writes, Reads, FromReplicas int64
	Errors                      int64
}

// ReplicaShare is the share of reads that replicas answered, from 0 to 1.
func (s *Stats) ReplicaShare() float64 {
	if s.Reads == 0 {
		return 0
	}
	return float64(s.FromReplicas) / float64(s.Reads)
}

// Run runs the load to its end, or until ctx ends, and returns the history. The
// error is the first that an operation returned; the run goes on behind it.
func Run(ctx context.Context, target Target, o Options) (history.History, *Stats, error) {
	r := &run{target: target, o: o, rec: history.NewRecorder("load"), began: time.Now()}
	for k := range o.Sessions * o.Keys {
		if err := r.rec.Initial(keyName(o.FirstKey+int64(k)), 1); err != nil {
			return history.History{}, nil, err
		}
	}
	var wg sync.WaitGroup
	for i := range o.Sessions {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r.thread(ctx, i)
		}()
	}
	wg.Wait()
	return r.rec.History(), &r.stats, r.err()
}

type run struct {
	target Target
	o      Options
	rec    *history.Recorder
	began  time.Time
	done   atomic.Int64
	timed  atomic.Int64 // writes that came by the clock
	stats  Stats

	mu    sync.Mutex // protects first
	first error
}

func (r *run) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

// client is one session with its token.
type client struct {
	ses     *history.Session
	number  int
	token   string
	written int64 // the row written last
}

// thread is one user: its session now and then goes on as another one, which
// knows only the token.
func (r *run) thread(ctx context.Context, i int) {
	rng := rand.New(rand.NewPCG(r.o.Seed, uint64(i)))
	c := client{ses: r.rec.Session(fmt.Sprintf("s%d", i)), number: i, written: r.key(i, rng)}
	for n := 1; r.goesOn(ctx); n++ {
		switch p := rng.Float64(); {
		case p < r.o.Handover:
			next := r.rec.Session(fmt.Sprintf("s%d.%d", i, n))
			r.failed(next.Receive(c.ses.Mark().String()))
			c.ses = next
			r.done.Add(-1)
		case r.writes(p - r.o.Handover):
			r.write(ctx, &c, r.key(i, rng))
		default:
			r.read(ctx, &c, r.choose(&c, rng))
		}
		r.think(ctx, rng)
	}
}

func (r *run) goesOn(ctx context.Context) bool {
	inTime := r.o.Lasting == 0 || time.Since(r.began) < r.o.Lasting
	return r.done.Add(1) <= int64(r.o.Operations) && inTime && ctx.Err() == nil
}

// writes decides whether an operation is a write, p being drawn at random.
func (r *run) writes(p float64) bool {
	if r.o.WriteEvery == 0 {
		return p < r.o.Writes
	}
	n := r.timed.Load()
	return time.Since(r.began) > time.Duration(n+1)*r.o.WriteEvery && r.timed.CompareAndSwap(n, n+1)
}

func (r *run) think(ctx context.Context, rng *rand.Rand) {
	if r.o.Think == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(rng.ExpFloat64() * float64(r.o.Think)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// choose draws the row that is read.
func (r *run) choose(c *client, rng *rand.Rand) int64 {
	switch {
	case rng.Float64() < r.o.Elsewhere:
		return r.key(rng.IntN(r.o.Sessions), rng)
	case r.o.JustWritten:
		return c.written
	}
	return r.key(c.number, rng)
}

func (r *run) key(session int, rng *rand.Rand) int64 {
	return r.o.FirstKey + int64(session*r.o.Keys+rng.IntN(r.o.Keys))
}

func keyName(key int64) string { return fmt.Sprintf("item:%d", key) }

func (r *run) write(ctx context.Context, c *client, key int64) {
	atomic.AddInt64(&r.stats.Writes, 1)
	c.written = key
	op := c.ses.Write(keyName(key), history.VersionUnknown)
	began := time.Now()
	a, err := r.target.Write(ctx, c.token, key)
	defer r.tell(Done{Session: c.number, Write: true, Key: key, Began: began, Ended: time.Now(), Answer: a, Err: err})
	if err != nil {
		r.failed(err)
		op.End(history.Answer{Outcome: history.Unknown, Version: history.VersionUnknown})
		return
	}
	c.token = a.Token
	op.End(history.Answer{Outcome: history.OK, Version: a.Version})
}

func (r *run) read(ctx context.Context, c *client, key int64) {
	atomic.AddInt64(&r.stats.Reads, 1)
	op := c.ses.Read(keyName(key))
	began := time.Now()
	a, err := r.target.Read(ctx, c.token, key)
	defer r.tell(Done{Session: c.number, Key: key, Began: began, Ended: time.Now(), Answer: a, Err: err})
	if err != nil {
		r.failed(err)
		op.End(history.Answer{Outcome: history.Unknown})
		return
	}
	c.token = a.Token
	role := history.Primary
	if a.Replica {
		role = history.Replica
		atomic.AddInt64(&r.stats.FromReplicas, 1)
	}
	op.End(history.Answer{Outcome: history.OK, Version: a.Version, Node: a.Server, Role: role})
}

func (r *run) tell(d Done) {
	if r.o.Each != nil {
		r.o.Each(d)
	}
}

func (r *run) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	atomic.AddInt64(&r.stats.Errors, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = err
	}
}
