// Command packaging looks at this repository as those see it who import its modules.
//
//	go run ./packaging              build, vet and test every module against tagged ones
//	go run ./packaging -licences    whether what is imported may be used by everybody
//	go run ./packaging -set v0.1.0  let the modules require each other at a version
//
// Without a flag it takes the commit that is checked out, gives the modules a version as
// a release does, puts them into a proxy that is a folder, and works on each module
// outside of the workspace, without replacements, with what that proxy has. So a
// nested module that only works beside the others in one folder is found. It needs
// the dependencies, from the module cache or a proxy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	set := flag.String("set", "", "the version that modules are to require each other at")
	licences := flag.Bool("licences", false, "look at the licences of all dependencies")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *set, *licences); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, set string, licences bool) error {
	root, err := output(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	modules, err := modulesOf(root)
	switch {
	case err != nil:
		return err
	case set != "" && licences:
		return errors.New("-set and -licences: want one of them")
	case set != "":
		return setVersion(root, modules, set)
	case licences:
		return checkLicences(ctx, root, modules)
	}
	return prove(ctx, root, modules)
}
