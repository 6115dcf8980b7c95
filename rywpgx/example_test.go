package rywpgx_test

import (
	"database/sql"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// A pool of the application's own, with settings that a connection string cannot
// have.
func ExampleNewConnector() {
	cfg, err := pgx.ParseConfig("host=db.example.com user=app sslmode=verify-full")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg.ConnectTimeout = 0
	connector, err := rywpgx.NewConnector(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := sql.OpenDB(connector)
	defer pool.Close()
	pool.SetMaxOpenConns(20)

	_, err = gorm.Open(rywpgx.New(postgres.Config{Conn: pool}), &gorm.Config{DisableAutomaticPing: true})
	_, ours := rywpgx.Of(pool)
	fmt.Println(connector.Name(), ours, err)
	// Output: db.example.com:5432 true <nil>
}
