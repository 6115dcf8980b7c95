package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/workload"
)

// waitCap is how long a read waits for a replica at most, ours and the oracle's.
const waitCap = 50 * time.Millisecond

// oracle knows where every server is without asking. It keeps what the library
// keeps, read-your-writes and monotonic reads, and waits or goes by the same rule:
// if the estimated time fits the cap. It does not know the future.
//
// A session's token stands for a record that the oracle keeps: what was written and
// read where, and when that ended.
type oracle struct {
	*handles
	truth *truth

	mu       sync.Mutex // protects sessions
	sessions map[string]*seen
}

// seen is what a session must see. Its operations follow one another.
type seen struct {
	need  uint64
	where *positions // of the last operation whose position is not in need yet
	ended time.Time
}

func openOracle(_ context.Context, s *site, t *truth) (router, error) {
	h, err := openHandles(s.addresses(false))
	if err != nil {
		return nil, err
	}
	return &oracle{handles: h, truth: t, sessions: map[string]*seen{}}, nil
}

func (o *oracle) session(token string) (*seen, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token == "" {
		token = fmt.Sprint(len(o.sessions) + 1)
		o.sessions[token] = &seen{}
	}
	return o.sessions[token], token
}

// settle takes up the position that the last operation ended at or before.
func (o *oracle) settle(ctx context.Context, s *seen) error {
	if s.where == nil {
		return nil
	}
	at, err := s.where.after(ctx, s.ended)
	if err != nil {
		return err
	}
	if !at.alive() { // nobody knows what was read there: the primary has it
		if at, err = o.truth.logs[0].after(ctx, s.ended); err != nil {
			return err
		}
	}
	s.need, s.where = max(s.need, at.lsn), nil
	return nil
}

func (o *oracle) Write(ctx context.Context, token string, key int64) (workload.Answer, error) {
	s, token := o.session(token)
	if err := o.settle(ctx, s); err != nil {
		return workload.Answer{Token: token}, err
	}
	a, err := writeRow(o.primary.WithContext(ctx), key)
	a.Token = token
	s.where, s.ended = o.truth.logs[0], time.Now()
	return a, err
}

func (o *oracle) Read(ctx context.Context, token string, key int64) (workload.Answer, error) {
	s, token := o.session(token)
	if err := o.settle(ctx, s); err != nil {
		return workload.Answer{Token: token}, err
	}
	if i := o.choose(ctx, s.need); i >= 0 {
		a, err := readFrom(ctx, o.replicas[i], token, key)
		if err == nil {
			s.where, s.ended = o.truth.replicas()[i], time.Now()
			return a, nil
		}
	}
	a, err := readFrom(ctx, o.primary, token, key)
	s.where, s.ended = o.truth.logs[0], time.Now()
	return a, err
}

// choose returns a replica, or -1 for the primary.
func (o *oracle) choose(ctx context.Context, need uint64) int {
	fresh, _ := o.fresh(need)
	if len(fresh) == 0 {
		o.lookNow(ctx)
		if fresh, _ = o.fresh(need); len(fresh) == 0 && !o.worthWaiting(need) {
			return -1
		}
	}
	deadline := time.NewTimer(waitCap)
	defer deadline.Stop()
	for {
		fresh, news := o.fresh(need)
		if len(fresh) > 0 {
			return fresh[rand.IntN(len(fresh))]
		}
		select {
		case <-news:
		case <-deadline.C:
			return -1
		case <-ctx.Done():
			return -1
		}
	}
}

// lookNow returns when it is known where every replica is now.
func (o *oracle) lookNow(ctx context.Context) {
	now := time.Now()
	for _, p := range o.truth.logs {
		_, _ = p.after(ctx, now) // the error is ctx's
	}
}

// fresh returns the replicas that have need, and what is closed when more is known.
func (o *oracle) fresh(need uint64) (fresh []int, news <-chan struct{}) {
	var last sample
	for i, p := range o.truth.replicas() {
		s, next := p.last()
		if s.alive() && s.lsn >= need {
			fresh = append(fresh, i)
		}
		if news == nil || s.begun.Before(last.begun) { // the next to tell is the one that told first
			last, news = s, next
		}
	}
	return fresh, news
}

// worthWaiting estimates when a replica gets to need: each lags by as much of the
// primary's time as it lags now.
func (o *oracle) worthWaiting(need uint64) bool {
	for _, p := range o.truth.replicas() {
		if s, _ := p.last(); s.alive() && o.truth.remaining(s.lsn, need) <= waitCap {
			return true
		}
	}
	return false
}

// remaining is how long after leaving have behind the primary got to need.
func (t *truth) remaining(have, need uint64) time.Duration {
	left, ok := t.logs[0].passed(have)
	if !ok {
		return 0
	}
	got, ok := t.logs[0].passed(need - 1)
	if !ok {
		return 0
	}
	return got.Sub(left)
}
