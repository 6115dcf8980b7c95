package watcher_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
)

// How far a server is, on a connection of one's own. It is compiled here, and run by
// examples/api.
func ExampleProbe() {
	ctx := context.Background()
	for _, dsn := range []string{os.Getenv("PRIMARY"), os.Getenv("REPLICA")} {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			log.Fatal(err)
		}
		s, err := watcher.NewProbe(conn).Take(ctx)
		fmt.Println("standby:", s.Standby, "timeline:", s.Position.Timeline, "pooler:", s.Pooled, err)
		_ = conn.Close(ctx)
	}
	// Prints:
	// standby: false timeline: 1 pooler: false <nil>
	// standby: true timeline: 1 pooler: false <nil>
}
