package callbacks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

func state(code string) error { return &pgconn.PgError{Code: code} }

// Only what certainly was not committed is undone: what is taken for undone by
// mistake is a write that its session may not see.
func TestUndone(t *testing.T) {
	for code, want := range map[string]bool{
		"23505": true,  // unique_violation
		"23503": true,  // foreign_key_violation
		"40001": true,  // serialization_failure
		"40P01": true,  // deadlock_detected
		"42601": true,  // syntax_error
		"42P01": true,  // undefined_table
		"22012": true,  // division_by_zero
		"25006": true,  // read_only_sql_transaction
		"25P02": true,  // in_failed_sql_transaction
		"0A000": true,  // feature_not_supported
		"21000": true,  // cardinality_violation
		"54001": true,  // statement_too_complex
		"55P03": true,  // lock_not_available
		"P0001": true,  // raise_exception
		"40003": false, // statement_completion_unknown
		"57014": false, // query_canceled: also the wait for a standby, behind the commit
		"57P01": false, // admin_shutdown, likewise
		"57P02": false, // crash_shutdown
		"08006": false, // connection_failure
		"08007": false, // transaction_resolution_unknown
		"53200": false, // out_of_memory
		"58030": false, // io_error
		"XX000": false, // internal_error
		"01000": false, // a warning is no error
		"":      false,
		"23":    false,
	} {
		if have := Undone(state(code)); have != want {
			t.Errorf("SQLSTATE %q: have undone %v, want %v", code, have, want)
		}
		if have := Undone(fmt.Errorf("create: %w", state(code))); have != want {
			t.Errorf("SQLSTATE %q, wrapped: have undone %v, want %v", code, have, want)
		}
	}
}

func TestUndoneWithoutSQLSTATE(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":            {nil, false},
		"cancelled":           {context.Canceled, false},
		"timed out":           {context.DeadlineExceeded, false},
		"connection lost":     {io.ErrUnexpectedEOF, false},
		"connection reset":    {&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		"bad connection":      {driver.ErrBadConn, false},
		"transaction ended":   {sql.ErrTxDone, false},
		"commit undone":       {pgx.ErrTxCommitRollback, false},
		"anything":            {errors.New("anything"), false},
		"no WHERE":            {gorm.ErrMissingWhereClause, true},
		"empty slice":         {gorm.ErrEmptySlice, true},
		"invalid data":        {fmt.Errorf("x: %w", gorm.ErrInvalidData), true},
		"invalid transaction": {gorm.ErrInvalidTransaction, true},
	} {
		if have := Undone(tc.err); have != tc.want {
			t.Errorf("%s: have undone %v, want %v", name, have, tc.want)
		}
	}
}

// notSent is an error of pgx about a statement that was never sent.
type notSent struct{ error }

func (notSent) SafeToRetry() bool { return true }

func TestStatementThatWasNotSentIsUndone(t *testing.T) {
	if !Undone(fmt.Errorf("exec: %w", notSent{errors.New("closed before")})) {
		t.Error("have not undone")
	}
}

// Another server may answer what one could not; what is about the statement or
// the caller fails everywhere.
func TestWorthRetrying(t *testing.T) {
	for code, want := range map[string]bool{
		"40001": true, "25006": true, "0A000": true, "57P01": true, "57P02": true, "57P03": true, "08006": true, "53300": true,
		"57014": false, "42P01": false, "22012": false, "XX000": false, "23505": false,
	} {
		if have := worthRetrying(state(code)); have != want {
			t.Errorf("SQLSTATE %s: have %v, want %v", code, have, want)
		}
		if have := wrote(state(code)); have != (code == "25006") {
			t.Errorf("SQLSTATE %s: have wrote %v", code, have)
		}
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no rows":         {sql.ErrNoRows, false},
		"cancelled":       {context.Canceled, false},
		"transaction":     {sql.ErrTxDone, false},
		"anything":        {errors.New("x"), false},
		"not admitted":    {fmt.Errorf("x: %w", watcher.ErrNotAdmitted), true},
		"bad connection":  {driver.ErrBadConn, true},
		"connection lost": {io.ErrUnexpectedEOF, true},
		"end of file":     {io.EOF, true},
		"closed":          {net.ErrClosed, true},
		"closed by pgx":   {fmt.Errorf("x: %w", pgconn.ErrConnClosed), true},
		"network":         {&net.OpError{Op: "read", Err: errors.New("reset")}, true},
	} {
		if have := worthRetrying(tc.err); have != tc.want {
			t.Errorf("%s: have %v, want %v", name, have, tc.want)
		}
		if wrote(tc.err) {
			t.Errorf("%s: taken for a write", name)
		}
	}
}
