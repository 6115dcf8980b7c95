package rywplugin

import (
	"bytes"
	"context"
	"log"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Each line says where its statement went, and still which line of the program it
// comes from.
func TestLogger(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	var out bytes.Buffer
	plain := logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Info})
	db := a.db.Session(&gorm.Session{Logger: Logger(plain)})
	replica := a.replicas[0].Addr()
	for name, tc := range map[string]struct {
		run  func() error
		want string
	}{
		"replica":    {func() error { return db.Scopes(scopes.StaleOK()).Raw("select 1 as one").Scan(new([]int)).Error }, "select 1 as one /* " + replica + ": any healthy replica, have 1:0/3E8 ("},
		"primary":    {func() error { return db.Raw("select 1 as one").Scan(new([]int)).Error }, "select 1 as one /* primary: default is strong */"},
		"write":      {func() error { return db.Exec("insert into p values (1)").Error }, "insert into p values (1) /* primary: not provably a pure read */"},
		"generics":   {func() error { return gorm.G[thing](db).Exec(t.Context(), "insert into p values (2)") }, "insert into p values (2) /* primary: "},
		"debug":      {func() error { return db.Debug().Raw("select 3").Scan(new([]int)).Error }, "select 3 /* primary: default is strong */"},
		"parameters": {func() error { return db.Raw("select ? as one", "x").Scan(new([]string)).Error }, "select 'x' as one /* primary"},
		"in a transaction": {func() error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Raw("select 4").Scan(new([]int)).Error })
		}, "select 4 /* primary: in a transaction */"},
		"dry run": {func() error {
			return db.Session(&gorm.Session{DryRun: true}).Find(&thing{}, 5).Error
		}, "\"id\" = 5\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			if err := tc.run(); err != nil {
				t.Fatal(err)
			}
			if have := out.String(); !strings.Contains(have, tc.want) || !strings.Contains(have, "logger_test.go:") {
				t.Errorf("have %q, want %q", have, tc.want)
			}
		})
	}
}

// A statement that is not printed is not explained either, and parameters stay out of
// the log for those who want that.
func TestLoggerIsTheOtherOneInAllElse(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	var out bytes.Buffer
	plain := logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Info, ParameterizedQueries: true})
	db := a.db.Session(&gorm.Session{Logger: Logger(plain)})
	if err := db.Where("name = ?", "private").Find(&[]thing{}).Error; err != nil {
		t.Fatal(err)
	}
	if have := out.String(); strings.Contains(have, "private") || !strings.Contains(have, policy.ByDefault.String()) {
		t.Errorf("have %q", have)
	}
	out.Reset()
	if err := db.Session(&gorm.Session{Logger: Logger(plain).LogMode(logger.Silent)}).Raw("select 1").Scan(new([]int)).Error; err != nil || out.Len() != 0 {
		t.Errorf("silent: have %q, %v", out.String(), err)
	}
	Logger(plain).Warn(context.Background(), "by the way")
	if !strings.Contains(out.String(), "by the way") {
		t.Errorf("have %q", out.String())
	}
}
