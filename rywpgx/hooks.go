package rywpgx

import (
	"context"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// Hooks is what a Connector asks and tells once it is bound. The methods are
// called in the goroutine of the statement, while its connection is held, so they
// must not use the pool. Safe for concurrent use.
type Hooks interface {
	// Admit is called with each new connection, before anything else may use it.
	// An error closes the connection and is what the caller of the pool gets. The
	// probe must have taken a sample of the connection; with a nil probe nothing is
	// ever asked on it, and commits are reported without a position.
	Admit(ctx context.Context, conn *pgx.Conn) (*watcher.Probe, error)

	// Admitted reports whether a connection that was admitted may be used again.
	// It is asked each time one is taken from the pool and must be quick; the
	// connection is closed if it may not.
	Admitted(conn *pgx.Conn) bool

	// Pure reports whether the text is provably a pure read. Every other statement
	// counts as a write.
	Pure(sql string) bool

	// Observer returns who is to learn of what a statement with this context does,
	// or nil for nobody: nothing is asked for a statement without observer. It is
	// called once for each statement, as late as when it is sent. With Ignored the
	// statement does not count as a write of its transaction either.
	Observer(ctx context.Context) Observer
}

// Ignored is the observer of a statement that is as if it had written nothing.
var Ignored Observer = ignored{}

type ignored struct{}

func (ignored) Floor() bool  { return false }
func (ignored) Report(Event) {}

// Observer learns of units of work: a statement outside of a transaction, or a
// transaction from its BEGIN to its end. The observer of a statement that is part
// of a transaction observes the transaction, as does that of its BEGIN, which has
// the context given to BeginTx. Observers are compared with ==: equal ones of one
// transaction are told once.
type Observer interface {
	// Floor reports whether the position is wanted of work that wrote nothing, too.
	Floor() bool

	// Report is called when a unit of work has ended, before the call returns that
	// ended it: Exec, Commit, Rollback, or whatever closed the rows. It is called
	// for every transaction, and for every statement outside of one that may have
	// written or whose position was wanted, unless it was never sent.
	Report(Event)
}

// Event says how a unit of work ended.
type Event struct {
	// Outcome says what is known of it.
	Outcome Outcome
	// Sample is a position of the server that did the work, asked for in the same
	// message and taken by the server after it had ended. The position is at or
	// beyond whatever was written or read. Its Begun is when the message was sent.
	// It is zero if the position is not known, see Placed.
	Sample watcher.Sample
	// Err is the error of the work, or if that had none, why there is no position.
	Err error
}

// Placed reports whether the event comes with a position.
func (e Event) Placed() bool { return e.Sample.Begun != 0 }

// Outcome is what is known of a unit of work.
type Outcome uint8

// The outcomes.
const (
	// Read wrote nothing and was answered, or failed without effect.
	Read Outcome = iota
	// Committed was acknowledged by the server.
	Committed
	// Undone was certainly not committed: rolled back, refused or never sent. What
	// it has read, or been told by an error, it has read.
	Undone
	// Indeterminate was sent, and its outcome never learnt: it may be committed,
	// now or later.
	Indeterminate
)

var outcomeTexts = [...]string{Read: "read", Committed: "committed", Undone: "undone", Indeterminate: "indeterminate"}

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeTexts) {
		return outcomeTexts[o]
	}
	return "unknown outcome"
}
