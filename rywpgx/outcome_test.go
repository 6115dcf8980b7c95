package rywpgx

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestCertainlyUndone(t *testing.T) {
	for code, want := range map[string]bool{
		"23505": true, "40001": true, "40P01": true, "42P01": true, "22012": true, "25P02": true, "25006": true,
		"40003": false, "57014": false, "57P01": false, "08006": false, "53300": false, "58030": false, "XX000": false, "": false, "23": false,
	} {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})
		if have := CertainlyUndone(err); have != want {
			t.Errorf("SQLSTATE %q: have %v, want %v", code, have, want)
		}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.ErrUnexpectedEOF, false},
		{errors.New("anything"), false},
		{fmt.Errorf("wrapped: %w", pgx.ErrTxCommitRollback), true},
		{retry{}, true},
	} {
		if have := CertainlyUndone(c.err); have != c.want {
			t.Errorf("%v: have %v, want %v", c.err, have, c.want)
		}
	}
}

// retry is an error of a statement that was not sent.
type retry struct{}

func (retry) Error() string     { return "not sent" }
func (retry) SafeToRetry() bool { return true }

func TestOutcomesHaveNames(t *testing.T) {
	for o, want := range map[Outcome]string{
		Read: "read", Committed: "committed", Undone: "undone", Indeterminate: "indeterminate", 99: "unknown outcome",
	} {
		if o.String() != want {
			t.Errorf("have %s, want %s", o, want)
		}
	}
}
