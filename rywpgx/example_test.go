package rywpgx_test

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// It is compiled here, and run by examples/api.
func ExampleOpen() {
	db, err := gorm.Open(rywpgx.Open(os.Getenv("PRIMARY")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var one int
	err = db.Transaction(func(tx *gorm.DB) error {
		_, plain := tx.Statement.ConnPool.(*sql.Tx) // as with gorm.io/driver/postgres
		fmt.Println(plain)
		return tx.Raw("select 1").Scan(&one).Error
	})
	fmt.Println(one, err)
	// Prints:
	// true
	// 1 <nil>
}

// After an error of a commit, or of a statement outside of a transaction.
func ExampleCertainlyUndone() {
	fmt.Println(rywpgx.CertainlyUndone(&pgconn.PgError{Code: "40001"})) // serialization_failure
	fmt.Println(rywpgx.CertainlyUndone(io.ErrUnexpectedEOF))            // it may have been done
	// Output:
	// true
	// false
}
