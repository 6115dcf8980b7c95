package rywpgx

import (
	"context"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// callbacks are what options of pgx's database/sql driver have set, so that
// something can be done behind it: an option given twice replaces the first.
type callbacks struct {
	beforeConnect func(context.Context, *pgx.ConnConfig) error
	resetSession  func(context.Context, *pgx.Conn) error
}

// callbacksOf reads them from the exported fields of the driver's connector, whose
// type is not exported. A driver that has no such fields any more is an error, not
// a silent loss of an option.
func callbacksOf(opts []stdlib.OptionOpenDB) (c callbacks, err error) {
	connector := reflect.ValueOf(stdlib.GetConnector(pgx.ConnConfig{}, opts...))
	err = take(connector, "BeforeConnect", &c.beforeConnect)
	if err == nil {
		err = take(connector, "ResetSession", &c.resetSession)
	}
	return c, err
}

func take[F any](connector reflect.Value, name string, to *F) error {
	connector = reflect.Indirect(connector)
	if connector.Kind() == reflect.Struct {
		if field := connector.FieldByName(name); field.IsValid() && field.CanInterface() {
			if f, ok := field.Interface().(F); ok {
				*to = f
				return nil
			}
		}
	}
	return fmt.Errorf("option %s of pgx's database/sql driver: this version of pgx is not supported", name)
}
