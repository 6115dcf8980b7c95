package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
)

// Level is how much a read must see. A larger one is stronger.
type Level uint8

// The levels.
const (
	// Unset asks for nothing in particular: the context, the session and then
	// the configured default decide.
	Unset Level = iota
	// StaleOK may be answered by any healthy replica.
	StaleOK
	// ReadYourWrites must see what a token and the session cover.
	ReadYourWrites
	// Strong is answered by the primary.
	Strong

	levels
)

func (l Level) String() string {
	switch l {
	case StaleOK:
		return "stale ok"
	case ReadYourWrites:
		return "read your writes"
	case Strong:
		return "strong"
	}
	return "unset"
}

// Label is the level's name in metrics: lower case, with underscores.
func (l Level) Label() string { return strings.ReplaceAll(l.String(), " ", "_") }

// Hint is what a query or a context asks for. It is immutable once it can be
// seen by a query, but for its sessions.
type Hint struct {
	Level Level
	// MaxStaleness bounds StaleOK; zero is no bound.
	MaxStaleness time.Duration
	// Sessions hold the tokens of ReadYourWrites and what was read under them,
	// so that several queries made with one hint are monotonic among themselves.
	// The slice is not changed any more.
	Sessions []*session.Session
	// Err makes every query that carries the hint fail.
	Err error
}

// And combines two hints on one query: the stronger level, the tighter bound,
// all tokens, the first error.
func (h *Hint) And(o *Hint) *Hint {
	switch {
	case h == nil || h == o:
		return o
	case o == nil:
		return h
	}
	r := &Hint{Level: max(h.Level, o.Level), MaxStaleness: h.MaxStaleness, Sessions: slices.Clip(h.Sessions), Err: h.Err}
	if r.MaxStaleness == 0 || o.MaxStaleness > 0 && o.MaxStaleness < r.MaxStaleness {
		r.MaxStaleness = o.MaxStaleness
	}
	if r.Err == nil {
		r.Err = o.Err
	}
	for _, s := range o.Sessions {
		if !slices.Contains(r.Sessions, s) {
			r.Sessions = append(r.Sessions, s)
		}
	}
	return r
}

// Default is what applies to a read with neither hint nor session.
type Default uint8

// The defaults.
const (
	// DefaultStrong sends such reads to the primary.
	DefaultStrong Default = iota
	// DefaultStaleOK sends them to any healthy replica, as dbresolver does.
	DefaultStaleOK
)

func (d Default) String() string {
	switch d {
	case DefaultStrong:
		return "Strong"
	case DefaultStaleOK:
		return "StaleOK"
	}
	return fmt.Sprintf("Default(%d)", uint8(d))
}
