package rywpgx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// Errors of checked reads.
var (
	// ErrBehind is wrapped by the error of a checked read whose result was
	// discarded because the server was not far enough when it was read.
	ErrBehind = errors.New("server is behind")
	// ErrUnchecked is wrapped by the error of a checked read whose result was
	// discarded because no position came with it: the pool is not one of a bound
	// Connector, the statement is not a pure read, or the position query failed.
	ErrUnchecked = errors.New("read came without a position")
)

// Accept judges a position that a server had before a read. An error discards the
// read; it should say what the position is and what it must be.
type Accept func(watcher.Sample) error

// check is one checked read on its way through database/sql.
type check struct {
	accept Accept
	sample watcher.Sample
	done   bool
	err    error // why the read is to be discarded
}

type checkKey struct{}

func checkOf(ctx context.Context) *check {
	c, _ := ctx.Value(checkKey{}).(*check)
	return c
}

// verdict returns why a read is to be discarded, err being the read's own error.
func (c *check) verdict(err error) error {
	switch {
	case c.done:
		return c.err
	case err != nil:
		return nil // it tells more: nothing was answered at all
	}
	return ErrUnchecked
}

// Query sends a pure read together with a position query, position first and on
// the same connection, in one packet: what it returns was read by a server that
// had the sample's position before. If accept returns an error for that position,
// the read's result is discarded, or its error, and the error wraps ErrBehind and
// accept's. The sample is zero if none came.
//
// The pool is a *sql.DB of a bound Connector, or GORM's prepared statements on one.
// accept is called in the course of the call and must not use the connection.
func Query(ctx context.Context, pool gorm.ConnPool, accept Accept, query string, args ...any) (*sql.Rows, watcher.Sample, error) {
	c := check{accept: accept}
	defer c.forget()
	rows, err := pool.QueryContext(context.WithValue(ctx, checkKey{}, &c), query, args...)
	if no := c.verdict(err); no != nil {
		if err == nil {
			_ = rows.Close() // discarded
		}
		return nil, c.sample, no
	}
	return rows, c.sample, err
}

// QueryRow is Query for one row. With an error there is no row.
func QueryRow(ctx context.Context, pool gorm.ConnPool, accept Accept, query string, args ...any) (*sql.Row, watcher.Sample, error) {
	c := check{accept: accept}
	defer c.forget()
	row := pool.QueryRowContext(context.WithValue(ctx, checkKey{}, &c), query, args...)
	if no := c.verdict(row.Err()); no != nil {
		discard(row)
		return nil, c.sample, no
	}
	return row, c.sample, nil
}

// discard closes a row. GORM's prepared statements return an empty one, which
// cannot be scanned, if preparing failed.
func discard(row *sql.Row) {
	if *row != (sql.Row{}) {
		_ = row.Scan() // fails, having nowhere to put anything, and closes
	}
}

// forget lets go of who accepts: pgx keeps the contexts of a connection's last
// queries, and the connection may rest for long.
func (c *check) forget() { c.accept = refuseLate }

var errLate = errors.New("the position came after the read had ended")

func refuseLate(watcher.Sample) error { return errLate }

// check has the position asked for in front of what is sent next.
func (l *link) check(c *check) {
	c.done, c.err = false, nil
	l.attach(true, func() { l.settle(c) })
}

// settle judges the answer while pgx is waiting for the result of the read.
func (l *link) settle(c *check) {
	c.done = true
	var err error
	if c.sample, err = l.ask.sample(l.probe); err != nil {
		c.err = fmt.Errorf("%w: %w", ErrUnchecked, err)
		return
	}
	if err := c.accept(c.sample); err != nil {
		c.err = fmt.Errorf("%w: %w", ErrBehind, err)
	}
}
