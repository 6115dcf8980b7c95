package rywpgx

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// The application's options are found, whatever else there is.
func TestCallbacksOf(t *testing.T) {
	before, reset := errors.New("before"), errors.New("reset")
	c, err := callbacksOf([]stdlib.OptionOpenDB{
		stdlib.OptionResetSession(func(context.Context, *pgx.Conn) error { return reset }),
		stdlib.OptionAfterConnect(func(context.Context, *pgx.Conn) error { return nil }),
		stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error { return nil }),
		stdlib.OptionBeforeConnect(func(context.Context, *pgx.ConnConfig) error { return before }),
	})
	if err != nil || !errors.Is(c.beforeConnect(t.Context(), nil), before) || !errors.Is(c.resetSession(t.Context(), nil), reset) {
		t.Errorf("have %v, %v", c, err)
	}
	c, err = callbacksOf(nil)
	if err != nil || c.beforeConnect(t.Context(), nil) != nil || c.resetSession(t.Context(), nil) != nil {
		t.Errorf("without options: have %v, %v", c, err)
	}
}

// A driver that has changed is an error that says so.
func TestOptionsOfAnotherDriver(t *testing.T) {
	type other struct{ BeforeConnect func() }
	for name, v := range map[string]any{"no field": struct{}{}, "another type": other{}, "no struct": 5} {
		var f func(context.Context, *pgx.ConnConfig) error
		err := take(reflect.ValueOf(v), "BeforeConnect", &f)
		if err == nil || !strings.Contains(err.Error(), "BeforeConnect") {
			t.Errorf("%s: have %v", name, err)
		}
	}
}
