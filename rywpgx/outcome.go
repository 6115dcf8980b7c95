package rywpgx

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// undoneClasses are the SQLSTATE classes of errors that abort a statement or a
// transaction. Others may come after the commit: a wait for a synchronous standby
// that was cancelled or terminated (class 57), for one. Source: PostgreSQL manual,
// appendix A and 27.2.8.
const undoneClasses = "0A 20 21 22 23 24 25 26 28 2B 2F 34 38 39 3B 3D 3F 40 42 44 54 55 P0"

const unknownOutcome = "40003" // statement_completion_unknown, of class 40

// CertainlyUndone reports whether err proves that what it is about was not
// committed. An error without SQLSTATE proves nothing unless it was raised before
// anything was sent: the connection may have been lost between the commit and its
// acknowledgement. False for nil.
func CertainlyUndone(err error) bool {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return false
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return true
	case !errors.As(err, &pg):
		return pgconn.SafeToRetry(err)
	}
	return len(pg.Code) == 5 && pg.Code != unknownOutcome && strings.Contains(undoneClasses, pg.Code[:2])
}
