package callbacks

import (
	"context"
	"slices"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
)

// observers are the sessions that a statement advances: the context's, the
// hint's, a collector's and the statement's own. The zero value is none. A copy
// may be added to without changing the original.
type observers struct {
	few  [4]*session.Session
	more []*session.Session // beyond the usual few
}

// observersOf returns the sessions of a context and of the hint that applies.
func observersOf(ctx context.Context, query *policy.Hint) observers {
	ses, hint, sink, _ := valuesOf(ctx)
	var o observers
	o.add(ses)
	o.add(sink)
	if h := firstHint(query, hint); h != nil {
		o.addAll(h.Sessions)
	}
	return o
}

// add adds a session, unless it is nil or there already.
func (o *observers) add(s *session.Session) {
	if s == nil {
		return
	}
	for i, have := range o.few {
		if have == s {
			return
		}
		if have == nil {
			o.few[i] = s
			return
		}
	}
	if !slices.Contains(o.more, s) {
		o.more = append(slices.Clip(o.more), s)
	}
}

func (o *observers) addAll(ss []*session.Session) {
	for _, s := range ss {
		o.add(s)
	}
}

// others reports whether there are observers besides own.
func (o *observers) others(own *session.Session) bool {
	for _, s := range o.few {
		if s != nil && s != own {
			return true
		}
	}
	return len(o.more) > 0
}

// list appends the observers to a slice.
func (o *observers) list(to []*session.Session) []*session.Session {
	for _, s := range o.few {
		if s != nil {
			to = append(to, s)
		}
	}
	return append(to, o.more...)
}

func (o *observers) each(do func(*session.Session)) {
	for _, s := range o.few {
		if s != nil {
			do(s)
		}
	}
	for _, s := range o.more {
		do(s)
	}
}
