package rywplugin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

type Order struct {
	ID     int64
	Status string
}

// The examples need servers. They are compiled here, and run by examples/api.

func Example() {
	db, err := gorm.Open(postgres.Open(os.Getenv("PRIMARY")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ryw := rywplugin.New(rywplugin.Config{
		Replicas: []gorm.Dialector{postgres.Open(os.Getenv("REPLICA"))},
		MaxWait:  10 * time.Second, // longer than one would wait, so that this ends on the replica
	})
	if err := db.Use(ryw); err != nil {
		log.Fatal(err)
	}
	defer ryw.Close()
	if err := ryw.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}

	ctx := session.NewContext(context.Background(), session.New()) // one user's work
	order := Order{Status: "paid"}
	if err := db.WithContext(ctx).Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	var found Order
	tx := db.WithContext(ctx).First(&found, order.ID)
	fmt.Println(found.Status, tx.Error)
	fmt.Println("on a replica:", rywplugin.Explain(tx).Replica)
	// Prints:
	// paid <nil>
	// on a replica: true
}

// shop is an application on a primary and a replica.
func shop() (*gorm.DB, *rywplugin.Plugin) {
	db, err := gorm.Open(rywpgx.Open(os.Getenv("PRIMARY")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ryw := rywplugin.New(rywplugin.Config{
		Replicas: []gorm.Dialector{rywpgx.Open(os.Getenv("REPLICA"))},
		MaxWait:  10 * time.Second,
	})
	if err := db.Use(ryw); err != nil {
		log.Fatal(err)
	}
	if err := ryw.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	return db, ryw
}

// A token continues a session in another process.
func ExampleToken() {
	db, ryw := shop()
	defer ryw.Close()

	order := Order{Status: "paid"}
	text := rywplugin.Token(db.Create(&order)).String() // into a header, a message …

	var found Order
	tx := db.Scopes(scopes.ReadYourWrites(text)).First(&found, order.ID)
	fmt.Println(found.Status, tx.Error)

	tx = db.Scopes(scopes.ReadYourWrites("r1.AS1gAQ")).Find(&[]Order{})
	fmt.Println("a bad token is never taken for none:", errors.Is(tx.Error, token.ErrInvalid))
	// Prints:
	// paid <nil>
	// a bad token is never taken for none: true
}

// Transaction returns no *gorm.DB that could be asked for a token.
func ExampleInto() {
	db, ryw := shop()
	defer ryw.Close()

	var tok token.Token
	ctx := rywplugin.Into(context.Background(), &tok)
	err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return tx.Create(&Order{Status: "paid"}).Error
	})
	fmt.Println(err, tok.IsZero())
	// Prints:
	// <nil> false
}

func ExampleExplain() {
	db, ryw := shop()
	defer ryw.Close()

	var orders []Order
	fmt.Println(rywplugin.Explain(db.Find(&orders)))
	fmt.Println(rywplugin.Explain(db.Scopes(scopes.Strong()).Find(&orders)))
	fmt.Println(rywplugin.Explain(db.Raw("select * from orders for update").Scan(&orders)))
	fmt.Println(rywplugin.Explain(db.Scopes(scopes.StaleOK()).Find(&orders)).Reason)
	// Prints:
	// primary: default is strong
	// primary: strong
	// primary: not provably a pure read
	// any healthy replica
}

// A job is enqueued in the transaction of the write that it is about.
func ExampleSQLTx() {
	db, ryw := shop()
	defer ryw.Close()

	err := db.Transaction(func(tx *gorm.DB) error {
		order := Order{Status: "paid"}
		if err := tx.Create(&order).Error; err != nil {
			return err
		}
		sqlTx, ok := rywplugin.SQLTx(tx)
		if !ok {
			return fmt.Errorf("%T is not a transaction", tx.Statement.ConnPool)
		}
		_, err := sqlTx.Exec("select $1::bigint, $2::text", order.ID, rywplugin.Token(tx).String()) // insert the job
		return err
	})
	fmt.Println(err)
	// Prints:
	// <nil>
}

// Beside a dbresolver that is there already.
func ExamplePlugin_Policy() {
	db, err := gorm.Open(rywpgx.Open(os.Getenv("PRIMARY")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ryw := rywplugin.New(rywplugin.Config{Default: rywplugin.StaleOK})
	defer ryw.Close()
	err = db.Use(dbresolver.Register(dbresolver.Config{
		Replicas: []gorm.Dialector{rywpgx.Open(os.Getenv("REPLICA"))},
		Policy:   ryw.Policy(),
	}))
	if err == nil {
		err = db.Use(ryw) // in either order
	}
	fmt.Println(err)

	var orders []Order
	ctx := session.NewContext(context.Background(), session.New())
	fmt.Println(rywplugin.Explain(db.WithContext(ctx).Create(&Order{Status: "paid"})).Replica)
	fmt.Println(db.WithContext(ctx).Find(&orders).Error, len(orders) > 0)
	// Prints:
	// <nil>
	// false
	// <nil> true
}

// A connection for code that does not use GORM.
func ExamplePlugin_Pick() {
	db, ryw := shop()
	defer ryw.Close()

	ctx := context.Background()
	tok := rywplugin.Token(db.Create(&Order{Status: "picked"}))
	conn, err := ryw.Pick(ctx, tok)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	var standby bool
	var n int
	err = conn.QueryRowContext(ctx, "select pg_is_in_recovery(), count(*) from orders where status = 'picked'").Scan(&standby, &n)
	fmt.Println(standby, n, err)
	// Prints:
	// true 1 <nil>
}

// A bulk writer does not outrun the replicas.
func ExamplePlugin_WaitReplicated() {
	db, ryw := shop()
	defer ryw.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 3 {
		tx := db.WithContext(ctx).Create([]Order{{Status: "imported"}, {Status: "imported"}})
		if tx.Error != nil {
			log.Fatal(tx.Error)
		}
		if err := ryw.WaitReplicated(ctx, rywplugin.Token(tx)); err != nil {
			log.Fatal(err)
		}
	}
	var n int64
	err := db.Scopes(scopes.StaleOK()).Model(&Order{}).Where("status = 'imported'").Count(&n).Error
	fmt.Println(n, err)
	// Prints:
	// 6 <nil>
}

func ExamplePlugin_Status() {
	_, ryw := shop()
	defer ryw.Close()

	for _, n := range ryw.Status().Nodes {
		fmt.Println("primary:", n.Primary, "healthy:", n.Healthy, "proven:", n.Proven)
	}
	// Prints:
	// primary: true healthy: true proven: true
	// primary: false healthy: true proven: true
}

// A page for operators, behind the application's own authentication.
func ExamplePlugin_Handler() {
	_, ryw := shop()
	defer ryw.Close()

	mux := http.NewServeMux()
	mux.Handle("/admin/ryw/", http.StripPrefix("/admin/ryw", ryw.Handler()))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/admin/ryw/status.json", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Prints:
	// 200 application/json
}
