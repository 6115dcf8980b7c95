package callbacks

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// Record is what is known of one statement. It is the statement's context, so
// that it reaches the statements made on its behalf (preloads, associations,
// hooks) and whoever holds the result.
type Record struct {
	context.Context
	stmt     *gorm.Statement
	values   ctxval.Values
	parent   *Record
	decision policy.Decision
	key      token.Key
	source   *policy.Pool // that a write was sent to; nil in a transaction

	// unit is who learns of the statement. Its own session, for Token, is nil
	// for reads.
	unit

	// active is set while the statement's callbacks run.
	active bool
	// running is set from before a write's hooks to after its commit.
	running bool
	// implicit says that GORM is about to begin a transaction for a write.
	implicit bool
	// silent says that nobody is to learn of the write.
	silent bool
	// within says that the statement ran in a transaction it did not begin.
	within bool
}

// Value implements context.Context.
func (r *Record) Value(key any) any {
	if key == (ctxval.Key{}) {
		return &r.values
	}
	return r.Context.Value(key)
}

// open makes r the record of a statement whose context is ctx.
func (r *Record) open(ctx context.Context) {
	r.Context = ctx
	if v := ctxval.From(ctx); v != nil {
		r.values = *v
		r.parent, _ = v.Record.(*Record)
	}
	r.values.Record = r
	r.values.Unit = nil  // of the statement on whose behalf this one runs
	r.values.Begin = nil // a clause is of this statement alone
	r.values.Here = nil  // of a statement in a transaction that ctx is from
}

// RecordOf returns the record of the statement that ctx belongs to, or nil.
func RecordOf(ctx context.Context) *Record {
	v := ctxval.From(ctx)
	if v == nil {
		return nil
	}
	r, _ := v.Record.(*Record)
	return r
}

// ownRecord is the record of the very statement, or nil: that of the statement on
// whose behalf it runs is in its context, too. A tracing plugin may have put a context
// of its own around the record.
func ownRecord(stmt *gorm.Statement) *Record {
	if stmt.Context == nil {
		return nil
	}
	if r := RecordOf(stmt.Context); r != nil && r.stmt == stmt {
		return r
	}
	return nil
}

// Token returns what the statement's sessions hold, and what the statement itself
// wrote or read.
func (r *Record) Token() token.Token {
	var t token.Token
	r.observers.each(func(s *session.Session) { t = t.Merge(s.Token()) })
	switch {
	case !t.IsZero() || r.decision.Err != nil:
		return t
	case r.decision.Replica != nil:
		return t.With(token.Entry{Key: r.key, SeenNodes: []token.Incarnation{r.decision.Incarnation}})
	case r.own == nil:
		return t.With(token.Entry{Key: r.key, SeenPrimary: true})
	}
	return t
}

// inWrite reports whether a write is under way on whose behalf r runs.
func (r *Record) inWrite() bool {
	for ; r != nil; r = r.parent {
		if r.running {
			return true
		}
	}
	return false
}

// TokenOf returns the token of a statement, or of a transaction that tx is the
// handle of: a mark while it is open, the commit's position afterwards.
func TokenOf(tx *gorm.DB) token.Token {
	if tx == nil || tx.Statement == nil {
		return token.Token{}
	}
	if t := transactionOf(tx.Statement.ConnPool); t != nil {
		return t.token()
	}
	if u := reported.of(rawTx(tx.Statement.ConnPool)); u != nil {
		return u.token()
	}
	if r := RecordOf(tx.Statement.Context); r != nil {
		return r.Token()
	}
	return token.Token{}
}

// valuesOf splits what a context carries.
func valuesOf(ctx context.Context) (ses *session.Session, hint *policy.Hint, sink *session.Session, rec *Record) {
	v := ctxval.From(ctx)
	if v == nil {
		return nil, nil, nil, nil
	}
	ses, _ = v.Session.(*session.Session)
	hint, _ = v.Hint.(*policy.Hint)
	sink, _ = v.Sink.(*session.Session)
	rec, _ = v.Record.(*Record)
	return ses, hint, sink, rec
}
