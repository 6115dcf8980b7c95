// Command first is the program of the README: one write and one read.
package main

import (
	"context"
	"log"
	"os"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type Project struct {
	ID   int64
	Name string
}

func main() {
	db, err := gorm.Open(postgres.Open(os.Getenv("PRIMARY")), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ryw := rywplugin.New(rywplugin.Config{
		Replicas: []gorm.Dialector{postgres.Open(os.Getenv("REPLICA"))},
	})
	if err := db.Use(ryw); err != nil {
		log.Fatal(err)
	}
	defer ryw.Close()

	ctx := session.NewContext(context.Background(), session.New()) // one user's work
	p := Project{Name: "read your writes"}
	if err := db.WithContext(ctx).AutoMigrate(&Project{}); err != nil {
		log.Fatal(err)
	}
	if err := db.WithContext(ctx).Create(&p).Error; err != nil {
		log.Fatal(err)
	}
	tx := db.WithContext(ctx).First(&p, p.ID) // on the replica, once that has it
	log.Println(p.Name, "from", rywplugin.Explain(tx), tx.Error)
}
