package scopes

import (
	"errors"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// PluginName is the name under which the plugin registers with GORM.
const PluginName = "gorm-ryw"

// ErrNoPlugin is the error of a query that carries a scope or clause of this
// package on a *gorm.DB without the plugin.
var ErrNoPlugin = errors.New("gorm-ryw: the plugin is not installed on this *gorm.DB: call db.Use(rywplugin.New(...)) first")

// hintKey is the statement setting that holds the query's *policy.Hint. GORM
// hands settings on to preloads and to the queries of FindInBatches.
const hintKey = "gorm-ryw:hint"

// Scope says what a query must see. Give it to (*gorm.DB).Scopes, or its Clause
// to whatever takes clauses. A Scope may be used for any number of queries, also
// at the same time; queries made with one ReadYourWrites are monotonic among
// themselves.
type Scope func(*gorm.DB) *gorm.DB

// Clause returns the scope as a clause, for gorm.G, gen, Clauses and Begin.
func (s Scope) Clause() Clause { return Clause{scope: s} }

// Clause is a Scope in the form of a clause. It adds nothing to the SQL.
type Clause struct{ scope Scope }

var (
	_ clause.Interface       = Clause{}
	_ gorm.StatementModifier = Clause{}
)

// Name implements clause.Interface.
func (Clause) Name() string { return PluginName }

// Build implements clause.Interface; it writes nothing.
func (Clause) Build(clause.Builder) {}

// MergeClause implements clause.Interface; it changes nothing.
func (Clause) MergeClause(*clause.Clause) {}

// ModifyStatement implements gorm.StatementModifier. The hint also goes into the
// statement's context, for Begin, which sees nothing else of a statement.
func (c Clause) ModifyStatement(stmt *gorm.Statement) {
	c.scope(stmt.DB)
	if h := OnQuery(stmt); h != nil && stmt.Context != nil {
		stmt.Context = ctxval.With(stmt.Context, func(v *ctxval.Values) { v.Begin = h })
	}
}

// Option refines StaleOK.
type Option func(*policy.Hint)

// MaxStaleness bounds how long ago a replica's state was the primary's. A read
// that no replica can serve within the bound waits as a token read does, then
// goes to the primary. Zero is no bound; a negative duration is an error of the
// query.
func MaxStaleness(d time.Duration) Option {
	return func(h *policy.Hint) {
		h.MaxStaleness = d
		if d < 0 {
			h.Err = fmt.Errorf("MaxStaleness: have %s, want 0 or more", d)
		}
	}
}

// StaleOK lets any healthy replica answer.
func StaleOK(opts ...Option) Scope { return scope(staleOK(opts)) }

func staleOK(opts []Option) *policy.Hint {
	h := &policy.Hint{Level: policy.StaleOK}
	for _, o := range opts {
		o(h)
	}
	return h
}

// Strong sends the read to the primary.
func Strong() Scope { return scope(&policy.Hint{Level: policy.Strong}) }

// ReadYourWrites lets a replica answer that has everything tok covers: a
// token.Token, the text of one, or a bare LSN such as "A2C/FE118820", which is
// taken to be of the cluster that is read from. An empty token asks for nothing:
// any healthy replica answers. A text that is no token makes the query fail with
// token.ErrInvalid.
func ReadYourWrites[T token.Token | token.LSN | ~string](tok T) Scope {
	return scope(readYourWrites(tok))
}

func readYourWrites[T token.Token | token.LSN | ~string](tok T) *policy.Hint {
	h := &policy.Hint{Level: policy.ReadYourWrites}
	t, err := asToken(tok)
	if err != nil {
		h.Err = fmt.Errorf("gorm-ryw: ReadYourWrites: %w", err)
		return h
	}
	h.Sessions = []*session.Session{session.New(t)}
	return h
}

func asToken[T token.Token | token.LSN | ~string](tok T) (token.Token, error) {
	switch t := any(tok).(type) {
	case token.Token:
		return t, nil
	case token.LSN:
		return token.FromLSN(t), nil
	}
	text := fmt.Sprint(tok)
	if text == "" {
		return token.Token{}, nil
	}
	return token.Parse(text)
}

// scope returns the scope that puts h on a query.
func scope(h *policy.Hint) Scope {
	return func(db *gorm.DB) *gorm.DB {
		old, _ := db.Get(hintKey)
		before, _ := old.(*policy.Hint)
		tx := needsPlugin(db.Set(hintKey, before.And(h)))
		if isCondition(tx.Statement) {
			carry(tx.Statement, h)
		}
		return tx
	}
}

// needsPlugin makes a query fail whose scope nobody would honour.
func needsPlugin(tx *gorm.DB) *gorm.DB {
	if _, ok := tx.Plugins[PluginName]; !ok {
		_ = tx.AddError(ErrNoPlugin)
		tx.Statement.Dest = failrow.New(ErrNoPlugin) // what Row returns
	}
	return tx
}

// OnQuery returns the hint that scopes and clauses put on a statement, or nil.
func OnQuery(stmt *gorm.Statement) *policy.Hint {
	v, ok := stmt.Settings.Load(hintKey)
	if !ok {
		return nil
	}
	h, _ := v.(*policy.Hint)
	return h
}

// captureOffKey is the statement setting of a query that is not captured.
const captureOffKey = "gorm-ryw:capture-off"

// NoCapture lets a write pass without its position being captured: no session
// learns of it, no token covers it, and nothing is asked of a server for it. It is
// for bulk loads that nobody reads back; whoever must see the rows all the same
// needs a token made afterwards, or Strong. It says nothing about reads.
func NoCapture() Scope {
	return func(db *gorm.DB) *gorm.DB { return needsPlugin(db.Set(captureOffKey, true)) }
}

// CaptureOff reports whether NoCapture is on a statement.
func CaptureOff(stmt *gorm.Statement) bool {
	_, ok := stmt.Settings.Load(captureOffKey)
	return ok
}
