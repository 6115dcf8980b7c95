package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tested are the modules whose tests are run, too: those that start no cluster.
var tested = []string{"rywgrpc", "rywotel", "rywredis", "examples/frameworks"}

// prove works on every module with a release of the commit that is checked out.
func prove(ctx context.Context, root string, modules []mod) (err error) {
	dir, err := os.MkdirTemp("", "packaging-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dirty, _ := output(ctx, root, nil, "git", "status", "--porcelain"); dirty != "" {
		fmt.Println("Not committed, so not looked at:\n" + dirty)
	}
	r, err := newRelease(ctx, root, modules, dir)
	if err != nil {
		return err
	}
	env, err := r.environment(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.forget(ctx, modules)) }()
	for _, m := range modules {
		began := time.Now()
		if err := r.work(ctx, m, filepath.Join(dir, "modules", m.dir, "module"), env); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
		fmt.Printf("%-22s builds%s (%s)\n", m.dir, also(m), time.Since(began).Round(100*time.Millisecond))
	}
	return r.use(ctx, filepath.Join(dir, "user"), env)
}

func also(m mod) string {
	if slices.Contains(tested, m.dir) {
		return ", vetted, tested"
	}
	return ", vetted"
}

// environment is that of a user of the release: no workspace, and what our modules
// hold is known to this proxy only.
func (r *release) environment(ctx context.Context) ([]string, error) {
	proxy, err := output(ctx, ".", nil, "go", "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	flags, err := output(ctx, ".", nil, "go", "env", "GOFLAGS")
	if err != nil {
		return nil, err
	}
	return []string{
		"GOWORK=off",
		"GOPROXY=file://" + filepath.ToSlash(r.proxy) + "," + proxy,
		"GONOSUMDB=" + rootPath + "," + rootPath + "/*",
		"GONOPROXY=none", "GOPRIVATE=",
		"GOFLAGS=" + strings.TrimSpace(flags+" -mod=mod -modcacherw"),
	}, nil
}

// work builds, vets and tests a module.
func (r *release) work(ctx context.Context, m mod, dir string, env []string) error {
	if err := r.unpack(m, dir); err != nil {
		return err
	}
	steps := [][]string{{"build", "./..."}, {"vet", "./..."}}
	if slices.Contains(tested, m.dir) {
		steps = append(steps, []string{"test", "-short", "./..."})
	}
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for _, args := range steps {
		if _, err := output(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	// -mod=mod, which lets go.sum learn of the release, adds what is missing to go.mod.
	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err == nil && !bytes.Equal(before, after) {
		err = fmt.Errorf("go.mod is not tidy: the go command made it\n%s", after)
	}
	return err
}

// use builds the README's program in a module of its own that requires the root, and
// says what its module graph is.
func (r *release) use(ctx context.Context, dir string, env []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(r.tree, "examples", "first", "main.go"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), program, 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/first"},
		{"mod", "edit", "-require=" + rootPath + "@" + r.version}, // "get" would look for modules within it, elsewhere
		{"build", "-o", os.DevNull, "."},
	} {
		if _, err := output(ctx, dir, env, "go", args...); err != nil {
			return err
		}
	}
	graph, err := output(ctx, dir, env, "go", "list", "-m", "all")
	if err != nil {
		return err
	}
	compiled, err := output(ctx, dir, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	if err != nil {
		return err
	}
	in := slices.Compact(slices.Sorted(strings.FieldsSeq(compiled)))
	fmt.Printf("The README's program, with the root module alone, has %d modules in its graph and compiles %d:\n  %s\n",
		strings.Count(graph, "\n")+1, len(in), strings.Join(in, "\n  "))
	return nil
}

// forget removes the release from the module cache, where nobody will look for it
// again.
func (r *release) forget(ctx context.Context, modules []mod) error {
	cache, err := output(context.WithoutCancel(ctx), ".", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	for _, m := range modules {
		err = errors.Join(err, os.RemoveAll(filepath.Join(cache, m.path()+"@"+r.version)))
		known := filepath.Join(cache, "cache", "download", m.path(), "@v")
		files, _ := filepath.Glob(filepath.Join(known, r.version+".*"))
		for _, file := range files {
			err = errors.Join(err, os.Remove(file))
		}
		_ = os.Remove(filepath.Join(known, "list")) // names this version; it may not be there
	}
	return err
}
