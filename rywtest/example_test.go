package rywtest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// A replica that lags for sure, and the end of the lag.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	if err := c.Replica(0).PauseReplay(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("write to", c.Primary().DSN(), "and read old rows from", c.Replica(0).DSN())
	if err := c.Replica(0).ResumeReplay(ctx); err != nil {
		log.Fatal(err)
	}
	if err := c.WaitReplicated(ctx); err != nil {
		log.Fatal(err)
	}
}

// A failover in which the old primary comes back as a replica.
func ExampleServer_Promote() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	old := c.Primary()
	if err := old.Kill(ctx); err != nil {
		log.Fatal(err)
	}
	if err := c.Replica(0).Promote(ctx); err != nil {
		log.Fatal(err)
	}
	if err := old.Follow(ctx, c.Primary()); err != nil {
		log.Fatal(err)
	}
}
