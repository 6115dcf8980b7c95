package callbacks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// again decides anew after a server failed before the first row: once for each
// replica of two, then for the primary, and once more if that fails.
func (c *call) again(ctx context.Context, query string, err error) bool {
	if ctx.Err() != nil || c.decision.Err != nil || c.decision.Reason == policy.ByResolver {
		return false
	}
	if isStalePlan(err) {
		c.forget(query)
	}
	failed := c.decision.Replica
	if failed == nil {
		return c.againAfterPrimary(ctx, err)
	}
	behind := errors.Is(err, rywpgx.ErrBehind) || errors.Is(err, rywpgx.ErrUnchecked)
	if !behind && !worthRetrying(err) {
		return false
	}
	failed.End()
	c.retries, c.tried = c.retries+1, failed
	switch {
	case behind:
		c.request.Checks++
		c.route(ctx)
	case wrote(err):
		c.pure = false
		c.toPrimary(policy.NotPure)
	case c.request.Exclude != nil: // the second one, or even a third
		c.request.NoReplica, c.fell = c.fell, true
		c.take(c.layer.cfg.Router.FallBack(ctx, &c.request, policy.ReplicaFailed))
	default:
		c.request.Exclude = failed
		c.route(ctx)
	}
	return true
}

// againAfterPrimary has a read whose primary went away sent once more: to a replica
// that qualifies by now, or to the primary, which may be another server or have
// been asked on a connection that was dead already.
func (c *call) againAfterPrimary(ctx context.Context, err error) bool {
	if !c.pure || c.retried || !isGone(err) && !isStalePlan(err) {
		return false
	}
	if isGone(err) {
		c.known.Group.Primary.Suspect()
	}
	c.retried, c.fell, c.request.NoReplica = true, false, false
	c.retries, c.tried = c.retries+1, nil
	if c.request.Set == nil {
		c.toPrimary(c.decision.Reason)
		return true
	}
	c.request.Exclude = nil
	c.route(ctx)
	return true
}

// forget gives up what was prepared for a text: its plan is of tables that have
// changed since, and would fail each time (G6).
func (c *call) forget(query string) {
	c.replan = true
	if _, prepared := unwrap(c.target); prepared != nil {
		prepared.Stmts.Delete(query)
	}
}

// replanned returns a text and args as they are sent again: if that is needed, in the
// mode in which pgx prepares nothing, and as a text that it has not prepared.
func (c *call) replanned(query string, args []any) (string, []any) {
	if !c.replan {
		return query, args
	}
	return query + " ", append([]any{pgx.QueryExecModeExec}, args...)
}

// bare is a pool without its prepared statements.
func bare(pool gorm.ConnPool) gorm.ConnPool {
	if db, prepared := unwrap(pool); prepared != nil && db != nil {
		return db
	}
	return pool
}

// worthRetrying reports errors that are about the server that was asked, not
// about the statement: another server may well answer it.
func worthRetrying(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", // cancelled by recovery
			"25006",          // read-only: the statement writes after all
			"0A000", "26000", // a prepared plan went stale, or is gone
			"57P01", "57P02", "57P03":
			return true
		}
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, sql.ErrTxDone) {
		return false
	}
	return errors.Is(err, watcher.ErrNotAdmitted) || isGone(err)
}

// isGone reports that the server, or the connection to it, went away.
func isGone(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P0") || strings.HasPrefix(pg.Code, "08")
	}
	var connect *pgconn.ConnectError
	return !errors.Is(err, context.Canceled) &&
		(errors.As(err, &connect) || errors.Is(err, driver.ErrBadConn) || isNetwork(err))
}

// isStalePlan reports that a prepared statement's tables were changed, or that it was
// given up meanwhile for that reason.
func isStalePlan(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "26000")
}

// wrote reports that a replica refused a statement because it would have written.
func wrote(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "25006"
}

// isNetwork reports errors of the connection itself.
func isNetwork(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}
