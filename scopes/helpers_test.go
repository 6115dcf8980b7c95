package scopes

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

type project struct {
	ID   int64
	Name string
}

// nowhere is a pool's connector that never connects.
type nowhere struct{}

var errNowhere = errors.New("leads nowhere")

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errNowhere }
func (nowhere) Driver() driver.Driver                        { return nil }

// open returns a handle whose statements never get to a server.
func open(t *testing.T, plugins ...gorm.Plugin) *gorm.DB {
	t.Helper()
	pool := sql.OpenDB(nowhere{})
	t.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{
		DisableAutomaticPing: true, SkipDefaultTransaction: true, Logger: logger.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// installed stands in the plugin's place and keeps the hint of each query.
type installed struct {
	hints []*policy.Hint
}

func (*installed) Name() string { return PluginName }

func (p *installed) Initialize(db *gorm.DB) error {
	look := func(db *gorm.DB) { p.hints = append(p.hints, OnQuery(db.Statement)) }
	return errors.Join(
		db.Callback().Query().Before("gorm:query").Register("test:look", look),
		db.Callback().Row().Before("gorm:row").Register("test:look", look),
		db.Callback().Create().Before("gorm:create").Register("test:look", look),
	)
}

// last is the hint of the newest query.
func (p *installed) last(t *testing.T) *policy.Hint {
	t.Helper()
	if len(p.hints) == 0 {
		t.Fatal("no query")
	}
	return p.hints[len(p.hints)-1]
}
