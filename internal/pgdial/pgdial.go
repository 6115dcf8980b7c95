// Package pgdial opens connections to PostgreSQL exactly as gorm.io/driver/postgres
// would for the same dialector, for pools and for the watcher's own connections.
package pgdial

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
)

// ErrNoDSN is returned for a dialector that was given an open pool or another
// database/sql driver, so that there is nothing to open connections by.
var ErrNoDSN = errors.New("dialector has no PostgreSQL connection string of its own")

// Source opens connections to one address. Safe for concurrent use.
type Source struct {
	name      string
	connector driver.Connector
}

// FromConfig returns the source of what postgres.New(c) would connect to.
// Errors do not contain the password.
func FromConfig(c *postgres.Config) (*Source, error) {
	if c.Conn != nil || c.DriverName != "" {
		return nil, ErrNoDSN
	}
	cfg, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, err // pgconn masks the password
	}
	if c.PreferSimpleProtocol {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	opts := c.OptionOpenDB
	if zone, ok := timeZone(c.DSN); ok {
		cfg.RuntimeParams["timezone"] = zone
		opts = append(opts[:len(opts):len(opts)], stdlib.OptionAfterConnect(scanIn(zone)))
	}
	return &Source{name: Name(cfg), connector: stdlib.GetConnector(*cfg, opts...)}, nil
}

// FromPool returns the source of an open pool of pgx's database/sql driver: what
// one of its connections was opened with. It takes a connection of the pool for
// that moment and so needs the server to be up.
func FromPool(ctx context.Context, db *sql.DB) (*Source, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a connection of the pool: %w", err)
	}
	defer conn.Close()
	var cfg *pgx.ConnConfig
	err = conn.Raw(func(c any) error {
		pc, ok := c.(interface{ Conn() *pgx.Conn })
		if !ok {
			return fmt.Errorf("pool's driver is %T, want pgx's", c)
		}
		cfg = pc.Conn().Config()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Source{name: Name(cfg), connector: stdlib.GetConnector(*cfg)}, nil
}

// Name is host and port of the first address, or the socket's path.
func Name(cfg *pgx.ConnConfig) string {
	if strings.HasPrefix(cfg.Host, "/") {
		return cfg.Host + ":" + strconv.Itoa(int(cfg.Port))
	}
	return net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
}

// Name says where the source connects to, without credentials.
func (s *Source) Name() string { return s.name }

// Dial opens one connection outside of any pool.
func (s *Source) Dial(ctx context.Context) (*pgx.Conn, error) {
	c, err := s.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.(*stdlib.Conn).Conn(), nil
}

// Check is called with each connection that a pool opens; an error closes it.
type Check func(ctx context.Context, conn *pgx.Conn) error

// OpenDB returns a pool whose connections have passed check. Like sql.Open it
// does not connect.
func (s *Source) OpenDB(check Check) *sql.DB {
	return sql.OpenDB(&checked{Connector: s.connector, check: check})
}

type checked struct {
	driver.Connector
	check Check
}

// Connect opens a connection and checks it.
func (c *checked) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.check(ctx, conn.(*stdlib.Conn).Conn()); err != nil {
		_ = conn.Close() // given up either way
		return nil, err
	}
	return conn, nil
}

var timeZoneParam = regexp.MustCompile(`(?:time_zone|TimeZone|timezone)=(.*?)(?:$|&| )`)

// timeZone finds the setting that gorm.io/driver/postgres takes out of a DSN.
func timeZone(dsn string) (string, bool) {
	m := timeZoneParam.FindStringSubmatch(dsn)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// scanIn makes timestamps without time zone scan in the given zone, as
// gorm.io/driver/postgres does.
func scanIn(zone string) func(context.Context, *pgx.Conn) error {
	return func(_ context.Context, conn *pgx.Conn) error {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return err
		}
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name:  "timestamp",
			OID:   pgtype.TimestampOID,
			Codec: &pgtype.TimestampCodec{ScanLocation: loc},
		})
		return nil
	}
}
