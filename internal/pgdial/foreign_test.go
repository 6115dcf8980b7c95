package pgdial

import (
	"context"
	"database/sql/driver"
	"errors"
)

// foreign is a driver that is not pgx.
type foreign struct{}

func (foreign) Connect(context.Context) (driver.Conn, error) { return foreign{}, nil }
func (foreign) Driver() driver.Driver                        { return foreign{} }
func (foreign) Open(string) (driver.Conn, error)             { return foreign{}, nil }
func (foreign) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("no") }
func (foreign) Close() error                                 { return nil }
func (foreign) Begin() (driver.Tx, error)                    { return nil, errors.New("no") }
