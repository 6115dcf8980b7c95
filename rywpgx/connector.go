package rywpgx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// DefaultCaptureTimeout is how long the end of a unit of work waits for its
// position, in addition to the work itself.
const DefaultCaptureTimeout = 250 * time.Millisecond

// ErrBound is returned by Bind for a Connector that is bound already.
var ErrBound = errors.New("rywpgx: connector is bound already")

// Connector opens the connections of a pool: those of pgx's database/sql driver,
// which they are in every respect, with a tap on the wire. Until it is bound, the
// tap passes everything on. Safe for concurrent use.
type Connector struct {
	source *pgdial.Source
	tapped driver.Connector
	user   callbacks
	bound  atomic.Pointer[binding]
}

type binding struct {
	hooks   Hooks
	timeout time.Duration
}

// NewConnector returns the connector of a pool with this configuration and these
// options, for sql.OpenDB. stdlib.OpenDB would open the same pool.
func NewConnector(cfg *pgx.ConnConfig, opts ...stdlib.OptionOpenDB) (*Connector, error) {
	user, err := callbacksOf(opts)
	if err != nil {
		return nil, err
	}
	c := &Connector{source: pgdial.New(cfg, opts...), user: user}
	c.tapped = stdlib.GetConnector(*cfg, append(opts[:len(opts):len(opts)],
		stdlib.OptionBeforeConnect(c.beforeConnect),
		stdlib.OptionResetSession(c.resetSession))...)
	return c, nil
}

// Of returns the Connector of a pool, or false if the pool is of another driver.
func Of(db *sql.DB) (*Connector, bool) {
	d, ok := db.Driver().(*poolDriver)
	if !ok {
		return nil, false
	}
	return d.connector, true
}

// Bind has the hooks asked and told from now on. It can be done once. Connections
// that the pool opened before are closed when they are next taken from it; one
// that is in use at the moment stays as it is until it is given back. A capture
// timeout of zero is DefaultCaptureTimeout.
func (c *Connector) Bind(h Hooks, captureTimeout time.Duration) error {
	if captureTimeout == 0 {
		captureTimeout = DefaultCaptureTimeout
	}
	if !c.bound.CompareAndSwap(nil, &binding{hooks: h, timeout: captureTimeout}) {
		return ErrBound
	}
	return nil
}

// Unbind ends the hooks of a Bind whose owner came to nothing. Connections that
// were admitted by them are closed when they are next taken from the pool. Other
// hooks stay.
func (c *Connector) Unbind(h Hooks) {
	if b := c.bound.Load(); b != nil && b.hooks == h {
		c.bound.CompareAndSwap(b, nil)
	}
}

// Name is host and port of the first address, without credentials.
func (c *Connector) Name() string { return c.source.Name() }

// Dial opens a connection outside of the pool, with the pool's configuration and
// options. Nothing of it is followed, and it is not admitted.
func (c *Connector) Dial(ctx context.Context) (*pgx.Conn, error) { return c.source.Dial(ctx) }

// Connect implements driver.Connector. The connection is a *stdlib.Conn.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	l := &link{}
	dc, err := c.tapped.Connect(context.WithValue(ctx, linkKey{}, l))
	if err != nil {
		return nil, err
	}
	conn := dc.(*stdlib.Conn).Conn()
	l.conn = conn
	conn.PgConn().CustomData()[customKey] = l
	if err := l.admit(ctx, c.bound.Load()); err != nil {
		_ = dc.Close() // given up either way
		return nil, err
	}
	return dc, nil
}

// Driver implements driver.Connector. Of finds the Connector by it.
func (c *Connector) Driver() driver.Driver {
	d, _ := c.tapped.Driver().(*stdlib.Driver)
	return &poolDriver{Driver: d, connector: c}
}

// poolDriver is pgx's driver that knows which pool it was asked for by.
type poolDriver struct {
	*stdlib.Driver
	connector *Connector
}

type linkKey struct{}

// customKey is where a connection's own data has its link.
const customKey = "github.com/gorm-ryw/gorm-ryw/rywpgx"

func (c *Connector) beforeConnect(ctx context.Context, cfg *pgx.ConnConfig) error {
	if err := c.user.beforeConnect(ctx, cfg); err != nil {
		return err
	}
	if l, ok := ctx.Value(linkKey{}).(*link); ok {
		l.install(cfg)
	}
	return nil
}

// resetSession is called when a connection is taken from the pool again.
func (c *Connector) resetSession(ctx context.Context, conn *pgx.Conn) error {
	if l, ok := conn.PgConn().CustomData()[customKey].(*link); ok {
		b := c.bound.Load()
		if l.binding != b || b != nil && !b.hooks.Admitted(conn) {
			return driver.ErrBadConn // opened before the pool was bound, or no longer good
		}
	}
	return c.user.resetSession(ctx, conn)
}
