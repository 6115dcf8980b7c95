package scopes_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

type Order struct {
	ID     int64
	Status string
}

// The examples need servers. They are compiled here, and run by examples/api.

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

func Example() {
	db, ryw := shop()
	defer ryw.Close()

	order := Order{Status: "paid"}
	tok := rywplugin.Token(db.Create(&order))
	var list []Order
	for _, scope := range []scopes.Scope{
		scopes.ReadYourWrites(tok), // at least what tok covers
		scopes.StaleOK(scopes.MaxStaleness(time.Minute)),
		scopes.Strong(),
	} {
		e := rywplugin.Explain(db.Scopes(scope).Find(&list))
		fmt.Println(e.Level, "on a replica:", e.Replica)
	}
	// Prints:
	// read your writes on a replica: true
	// stale ok on a replica: true
	// strong on a replica: false
}

// GORM's generics, gen and Begin take clauses.
func ExampleScope_Clause() {
	db, ryw := shop()
	defer ryw.Close()

	ctx := context.Background()
	order := Order{Status: "paid"}
	tok := rywplugin.Token(db.Create(&order))
	found, err := gorm.G[Order](db, scopes.ReadYourWrites(tok).Clause()).Where("id = ?", order.ID).First(ctx)
	fmt.Println(found.Status, err)
	// Prints:
	// paid <nil>
}

// For code that takes a context and nothing else. What the session has written is seen
// all the same.
func ExampleWithStaleOK() {
	db, ryw := shop()
	defer ryw.Close()

	report := func(ctx context.Context) rywplugin.Explanation {
		var list []Order
		return rywplugin.Explain(db.WithContext(ctx).Find(&list))
	}
	ctx := context.Background()
	fmt.Println(report(ctx).Level)
	fmt.Println(report(scopes.WithStaleOK(ctx)).Level)

	ctx = session.NewContext(ctx, session.New())
	db.WithContext(ctx).Create(&Order{Status: "paid"})
	fmt.Println(report(scopes.WithStaleOK(ctx)).Want.IsZero())
	// Prints:
	// strong
	// stale ok
	// false
}

// A bulk load that nobody reads back.
func ExampleNoCapture() {
	db, ryw := shop()
	defer ryw.Close()

	tx := db.Scopes(scopes.NoCapture()).Create([]Order{{Status: "old"}, {Status: "old"}})
	fmt.Println(tx.RowsAffected, rywplugin.Token(tx).IsZero())
	// Prints:
	// 2 true
}
