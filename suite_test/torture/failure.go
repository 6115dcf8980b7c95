package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
)

// classRefused is of a read that mode Strict refuses, because it could not be
// served without going back behind what the session has seen.
const classRefused = "not monotonic"

const classTimeout = "timeout"

// Classes of reads that were refused because the process has met an older primary
// than the session, or another server than the one that is watched.
const (
	classStale       = "stale primary"
	classNotAdmitted = "not admitted"
)

// classOf says what kind of error it is, in few words.
func classOf(err error) string {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var op *net.OpError
	switch {
	case errors.Is(err, errNoRow), errors.Is(err, errNoItem):
		return "row missing"
	case errors.Is(err, rywplugin.ErrNotMonotonic):
		return classRefused
	case errors.Is(err, rywplugin.ErrStalePrimary):
		return classStale
	case errors.Is(err, watcher.ErrNotAdmitted):
		return classNotAdmitted
	case errors.As(err, &pg) && errors.As(err, &connect):
		return "connect: SQLSTATE " + pg.Code
	case errors.As(err, &pg):
		return "SQLSTATE " + pg.Code
	case errors.Is(err, context.DeadlineExceeded) && errors.As(err, &connect):
		return "connect: " + classTimeout
	case errors.Is(err, context.DeadlineExceeded):
		return classTimeout
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &connect):
		return "connect"
	case errors.Is(err, driver.ErrBadConn):
		return "bad connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op):
		return "connection lost"
	}
	return "other"
}

// outcomeOf is what a writer knows about a write that failed: that nothing was
// done only where the server was read-only.
func outcomeOf(err error) history.Outcome {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "25006" {
		return history.Failed
	}
	return history.Unknown
}

// mostText bounds the text of an error that is reported, in bytes.
const mostText = 400

func textOf(err error) string {
	text := err.Error()
	if len(text) > mostText {
		text = text[:mostText] + " …"
	}
	return text
}
