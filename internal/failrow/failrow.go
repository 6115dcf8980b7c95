// Package failrow makes *sql.Row values that carry an error. GORM's Row returns
// a nil *sql.Row when a statement failed before it was sent, and the caller's
// Scan panics; a row that fails is what database/sql itself would return.
package failrow

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// New returns a row whose Scan and Err return err.
func New(err error) *sql.Row {
	db := sql.OpenDB(failing{err})
	defer db.Close()
	return db.QueryRow("")
}

type failing struct{ err error }

// Connect implements driver.Connector.
func (f failing) Connect(context.Context) (driver.Conn, error) { return nil, f.err }

// Driver implements driver.Connector.
func (f failing) Driver() driver.Driver { return f }

// Open implements driver.Driver.
func (f failing) Open(string) (driver.Conn, error) { return nil, f.err }
