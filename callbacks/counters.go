package callbacks

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// Counters is what a layer has counted.
type Counters struct {
	// Captures are writes whose position was asked for and told; of these Shared
	// joined a query that was another's. Failures are those for which it was asked
	// and not told.
	Captures, Shared, Failures int64
	// WriteMarks are writes that left a mark in place of a position, failed captures
	// included; ReadMarks reads of the primary that did.
	WriteMarks, ReadMarks int64
	// InvalidTokens are statements that failed because their token was none, or was
	// not signed by whom it should be.
	InvalidTokens int64
}

type counters struct {
	captures, shared, failures, writeMarks, readMarks, invalid atomic.Int64
}

// Counters returns what was counted so far.
func (l *Layer) Counters() Counters {
	n := &l.count
	return Counters{
		Captures: n.captures.Load(), Shared: n.shared.Load(), Failures: n.failures.Load(),
		WriteMarks: n.writeMarks.Load(), ReadMarks: n.readMarks.Load(), InvalidTokens: n.invalid.Load(),
	}
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	// CaptureFailed writes left a mark because their position could not be had.
	CaptureFailed EventKind = iota
	// NoPosition connections to a primary take writes and do not tell positions.
	NoPosition
	// PossiblyLost reads were under a session that holds something which may not
	// have survived a failover.
	PossiblyLost
	// Shed reads were kept from the primary by a cap on fallbacks.
	Shed
)

// Event is something that an operator may want to know. It may happen as often as
// there are statements.
type Event struct {
	Kind EventKind
	// Node is the name of the server concerned.
	Node string
	// Err says why; nil for PossiblyLost, and for Shed if the read was served stale.
	Err error
}

func (l *Layer) tell(e Event) {
	if l.cfg.Tell != nil {
		l.cfg.Tell(e)
	}
}

// markSeen records a read of the primary whose position is not known.
func (l *Layer) markSeen(key token.Key, obs *observers) {
	l.count.readMarks.Add(1)
	obs.each(func(s *session.Session) { s.MarkSawPrimary(key) })
}

// hintError is the error of the hint that applies: the query's or else the
// context's.
func (l *Layer) hintError(ctx context.Context, query *policy.Hint) error {
	_, ctxHint, _, _ := valuesOf(ctx)
	h := firstHint(query, ctxHint)
	if h == nil || h.Err == nil {
		return nil
	}
	if errors.Is(h.Err, token.ErrInvalid) {
		l.count.invalid.Add(1)
	}
	return h.Err
}
