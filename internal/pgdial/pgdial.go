// Package pgdial opens connections to PostgreSQL exactly as gorm.io/driver/postgres
// would for the same dialector, for pools and for the watcher's own connections.
package pgdial

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
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
	name string
	cfg  *pgx.ConnConfig // never changed
	opts []stdlib.OptionOpenDB
}

// FromConfig returns the source of what postgres.New(c) would connect to.
// Errors do not contain the password.
func FromConfig(c *postgres.Config) (*Source, error) {
	cfg, opts, err := Parse(c)
	if err != nil {
		return nil, err
	}
	return New(cfg, opts...), nil
}

// New returns the source of connections with a configuration and the options of
// pgx's database/sql driver.
func New(cfg *pgx.ConnConfig, opts ...stdlib.OptionOpenDB) *Source {
	return &Source{name: Name(cfg), cfg: cfg, opts: opts}
}

// Parse returns what postgres.New(c) would give pgx's database/sql driver to open
// its pool with. Errors do not contain the password.
func Parse(c *postgres.Config) (*pgx.ConnConfig, []stdlib.OptionOpenDB, error) {
	if c.Conn != nil || c.DriverName != "" {
		return nil, nil, ErrNoDSN
	}
	cfg, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, nil, err // pgconn masks the password
	}
	if c.PreferSimpleProtocol {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	opts := c.OptionOpenDB
	if zone, ok := timeZone(c.DSN); ok {
		cfg.RuntimeParams["timezone"] = zone
		opts = append(opts[:len(opts):len(opts)], stdlib.OptionAfterConnect(scanIn(zone)))
	}
	return cfg, opts, nil
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
	return New(cfg), nil
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

// Dial opens one connection outside of any pool. When a query on it is given up,
// the server is not asked to cancel it: pgx would do that on a connection of its
// own, in a goroutine that nobody can end while the server does not answer.
func (s *Source) Dial(ctx context.Context) (*pgx.Conn, error) {
	cfg := *s.cfg
	if ctx.Value(walSender{}) != nil {
		cfg.RuntimeParams = maps.Clone(cfg.RuntimeParams)
		cfg.RuntimeParams["replication"] = "database"
	}
	var opened atomic.Bool
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if opened.Load() {
			return nil, errNoCancel
		}
		return s.cfg.DialFunc(ctx, network, addr)
	}
	c, err := stdlib.GetConnector(cfg, s.opts...).Connect(ctx)
	if err != nil {
		return nil, err
	}
	opened.Store(true)
	return c.(*stdlib.Conn).Conn(), nil
}

type walSender struct{}

// WalSender returns a context with which Dial connects to a WAL sender, which takes
// commands of the replication protocol. That needs the REPLICATION attribute.
func WalSender(ctx context.Context) context.Context {
	return context.WithValue(ctx, walSender{}, true)
}

var errNoCancel = errors.New("queries on this connection are not cancelled")

// Check is called with each connection that a pool opens; an error closes it.
type Check func(ctx context.Context, conn *pgx.Conn) error

// Still is called with a connection before it is used again; false closes it.
type Still func(conn *pgx.Conn) bool

// OpenDB returns a pool whose connections have passed check, and still each time
// they are used again. Like sql.Open it does not connect. An OptionShouldPing
// among the source's options has no effect.
func (s *Source) OpenDB(check Check, still Still) *sql.DB {
	opts := append(s.opts[:len(s.opts):len(s.opts)], stdlib.OptionShouldPing(still.orClose))
	return sql.OpenDB(&checked{Connector: stdlib.GetConnector(*s.cfg, opts...), check: check})
}

// orClose makes the driver find a connection dead that may not be used again:
// its hook for a ping is the only one that no application needs for itself.
func (still Still) orClose(ctx context.Context, p stdlib.ShouldPingParams) bool {
	if !still(p.Conn) {
		_ = p.Conn.Close(ctx) // given up either way
		return true
	}
	return p.IdleDuration > time.Second // as the driver has it
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
