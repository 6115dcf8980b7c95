package rywtest

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// Server is one PostgreSQL server of a cluster. Its name and its addresses stay
// the same for its whole life, through restarts and changes of role.
//
// All methods may be called from several goroutines. Those that take a context
// return when what they ask for has happened, or with an error when the context
// ends; they do not need the server's clients to be reachable (see Partition).
type Server struct {
	c    *Cluster
	name string
	node backend.Node
}

// Name is "primary", "replica1", "replica2", …, by the role the server began in.
func (s *Server) Name() string { return s.name }

// Host is the host to connect to.
func (s *Server) Host() string { return s.node.Client().Host }

// Port is the TCP port to connect to.
func (s *Server) Port() int { return s.node.Client().Port }

// SocketDir is the folder of the server's unix socket, which has the number of
// the server's own port in its name; it is not affected by Partition. It is empty
// in containers.
func (s *Server) SocketDir() string { return s.node.SocketDir() }

// DSN is a URL for the superuser postgres and the database postgres, without
// password and encryption.
func (s *Server) DSN() string { return s.DSNAs("postgres") }

// DSNAs is DSN for another user, who has no password either.
func (s *Server) DSNAs(user string) string { return dsn(s.node.Client(), user) }

func dsn(at backend.Endpoint, user string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: at.String(), Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// Conn opens a connection as DSN says. The caller must close it.
func (s *Server) Conn(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	return conn, s.fail("connect", err)
}

// PID is the process id of the server's first process, 0 when it is not running. In
// a container it is the id there, which a later run may have again.
func (s *Server) PID() int { return s.node.PID() }

// Running reports whether the server's process exists; one that is frozen does.
func (s *Server) Running() bool {
	select {
	case <-s.node.Done():
		return false
	default:
		return true
	}
}

// Log returns the end of the server's log, to be shown when a test fails.
func (s *Server) Log() string { return s.node.Log() }

// fail adds to an error which server could not do what; nil stays nil.
func (s *Server) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", s.name, what, err)
}

// adminParams keep settings that a test gave the server away from the kit's own
// queries: on a standby, for one, serializable makes every query fail.
var adminParams = map[string]string{
	"application_name":              "rywtest",
	"client_encoding":               "UTF8",
	"default_transaction_isolation": "read committed",
	"idle_session_timeout":          "0",
	"standard_conforming_strings":   "on", // which pgx asks for
	"statement_timeout":             "0",
}

// adminConnect bounds one attempt to connect: a server that is just crashing may
// accept a connection and never answer.
const adminConnect = 5 * time.Second

// admin opens a connection for the kit's own queries, past any partition.
func (s *Server) admin(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn(s.node.Admin(), "postgres"))
	if err != nil {
		return nil, err
	}
	maps.Copy(config.RuntimeParams, adminParams)
	config.ConnectTimeout = adminConnect
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return pgx.ConnectConfig(ctx, config)
}

// hangUp closes a connection of the kit's.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx) // an error would be of a connection that is gone
}

// with calls f with a connection of its own.
func (s *Server) with(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	ctx, stop := s.c.bound(ctx)
	defer stop()
	conn, err := s.admin(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	return f(ctx, conn)
}

// withStandby is with for servers in recovery only.
func (s *Server) withStandby(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	return s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		switch standby, err := inRecovery(ctx, conn); {
		case err != nil:
			return err
		case !standby:
			return ErrNotStandby
		}
		return f(ctx, conn)
	})
}

func (s *Server) isStandby(ctx context.Context) (standby bool, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		standby, err = inRecovery(ctx, conn)
		return err
	})
	return standby, s.fail("ask for its role", err)
}

func inRecovery(ctx context.Context, conn *pgx.Conn) (yes bool, err error) {
	err = conn.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&yes)
	return yes, err
}
