package rywpgx

import (
	"database/sql"
	"errors"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Dialector is gorm.io/driver/postgres' with a pool of its own Connector. Each
// gorm.Open with it opens a new pool.
type Dialector struct {
	*postgres.Dialector
}

// Open returns the dialector of a connection string, as postgres.Open does.
func Open(dsn string) gorm.Dialector { return New(postgres.Config{DSN: dsn}) }

// New returns the dialector of a configuration, as postgres.New does. A pool of
// the application's (Conn) and a driver of another name (DriverName) are used as
// they are. So that the commits of a pool given as Conn are seen, open it with a
// Connector: sql.OpenDB(connector).
func New(config postgres.Config) gorm.Dialector {
	return &Dialector{&postgres.Dialector{Config: &config}}
}

// Connector returns a new Connector for what the dialector connects to, without
// connecting. Errors do not contain the password; one wraps pgdial.ErrNoDSN for a
// configuration with Conn or DriverName.
func (d *Dialector) Connector() (*Connector, error) {
	cfg, opts, err := pgdial.Parse(d.Config)
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg, opts...)
}

// Initialize implements gorm.Dialector. Like sql.Open it does not connect. Errors
// do not contain the password.
func (d *Dialector) Initialize(db *gorm.DB) error {
	connector, err := d.Connector()
	if errors.Is(err, pgdial.ErrNoDSN) {
		return d.Dialector.Initialize(db)
	}
	if err != nil {
		return err
	}
	given := *d.Config
	given.Conn = sql.OpenDB(connector)
	return postgres.Dialector{Config: &given}.Initialize(db)
}
