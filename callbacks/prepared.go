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
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
)

// poolOf returns a replica's pool in the form the statement wants: with prepared
// statements if its configuration says so. Each server has its own store of
// them: a prepared statement never crosses servers.
func (l *Layer) poolOf(c *call, rep *policy.Replica) gorm.ConnPool {
	if !c.db.PrepareStmt {
		return rep.Pool
	}
	if p, ok := l.prepared.Load(rep.Pool); ok {
		return p.(*gorm.PreparedStmtDB)
	}
	p := l.learnPrepared(c, rep)
	if p == nil {
		return rep.Pool
	}
	kept, _ := l.prepared.LoadOrStore(rep.Pool, p)
	return kept.(*gorm.PreparedStmtDB)
}

// learnPrepared finds dbresolver's prepared statements of a replica: dbresolver
// keeps them to itself, but hands them out with the pool it resolves to.
func (l *Layer) learnPrepared(c *call, rep *policy.Replica) *gorm.PreparedStmtDB {
	if db, prepared := unwrap(c.base); db == rep.Pool {
		return prepared
	}
	resolver := l.resolver.Load()
	toReplica := c.db.Callback().Query().Get(resolveName)
	if resolver == nil || toReplica == nil {
		return nil
	}
	probe := throwaway(c.db)
	probe.Statement.Settings.Store("gorm:db_resolver:read", struct{}{})
	resolver.Force(rep.Pool)
	toReplica(probe)
	resolver.Force(nil)
	if db, prepared := unwrap(probe.Statement.ConnPool); db == rep.Pool {
		return prepared
	}
	return nil
}

// worthRetrying reports errors that are about the server that was asked, not
// about the statement: another server may well answer it.
func worthRetrying(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", // cancelled by recovery
			"25006", // read-only: the statement writes after all
			"0A000", // a prepared plan went stale
			"57P01", "57P02", "57P03":
			return true
		}
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, sql.ErrTxDone) {
		return false
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, watcher.ErrNotAdmitted) ||
		errors.Is(err, driver.ErrBadConn) || isNetwork(err)
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
