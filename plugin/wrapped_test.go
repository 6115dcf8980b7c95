package rywplugin

import (
	"context"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

type spanKey struct{}

// A tracing plugin puts a context of its own around a statement's while that runs, as
// otelgorm does. Writes are captured all the same.
func TestStatementsContextIsWrapped(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	cb := a.db.Callback()
	wrap := func(db *gorm.DB) {
		db.Statement.Context = context.WithValue(db.Statement.Context, spanKey{}, "span")
	}
	for _, err := range []error{
		cb.Create().Before("gorm:create").Register("span", wrap), cb.Raw().Before("gorm:raw").Register("span", wrap),
		cb.Query().Before("gorm:query").Register("span", wrap),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, s := withSession()
	tx := a.write(a.db.WithContext(ctx))
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("session: have %+v", e)
	}
	if e, _ := Token(tx).Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("token of the write: have %+v", e)
	}
	a.want(a.db.WithContext(ctx), 0, policy.CaughtUp)
}
