// Command cleanup removes what rywtest keeps between runs: the templates of database
// clusters, in the cache folder and as images of the Docker engine, if there is one.
// Later runs make them anew.
//
//	go run ./rywtest/cmd/cleanup
//
// With -leftovers it removes, instead, the containers, volumes and networks of all
// clusters, of running tests as well. Tests remove their own; it is for when a
// machine went down, and their watchdogs with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/docker"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/local"
)

func main() {
	leftovers := flag.Bool("leftovers", false, "remove containers, volumes and networks of all clusters instead")
	flag.Parse()
	if err := clean(context.Background(), *leftovers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func clean(ctx context.Context, leftovers bool) error {
	if leftovers {
		return docker.RemoveLeftovers(ctx)
	}
	err := local.RemoveTemplates(ctx)
	if exec.CommandContext(ctx, "docker", "version").Run() != nil {
		return err // no engine, no images
	}
	return errors.Join(err, docker.RemoveTemplates(ctx))
}
