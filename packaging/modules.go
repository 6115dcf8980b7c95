package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const rootPath = "github.com/gorm-ryw/gorm-ryw"

// mod is a module of the repository.
type mod struct {
	dir string // from the repository's root; "." for that
}

func (m mod) path() string { return path.Join(rootPath, m.dir) }

// unshipped are the modules that nobody imports: they are not tagged.
var unshipped = []string{
	"suite_test", "suite_test/adminpage", "examples", "examples/frameworks", "examples/jobs", "bench", "packaging",
}

func (m mod) shipped() bool { return !slices.Contains(unshipped, m.dir) }

// modulesOf returns the modules that go.work names.
func modulesOf(root string) ([]mod, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, data, nil)
	if err != nil {
		return nil, err
	}
	var modules []mod
	for _, use := range work.Use {
		modules = append(modules, mod{path.Clean(use.Path)})
	}
	return modules, nil
}

// ours is a requirement on, or a replacement of, a version of one of our modules.
var ours = regexp.MustCompile(`(?m)^([^/\n]*` + regexp.QuoteMeta(rootPath) + `\S* )v\S+`)

// setVersion has the modules below root require each other at a version, and the
// workspace replace that.
func setVersion(root string, modules []mod, version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("-set: have %q, want a version such as v0.1.0", version)
	}
	files := []string{"go.work"}
	for _, m := range modules {
		files = append(files, filepath.Join(m.dir, "go.mod"))
	}
	for _, file := range files {
		name := filepath.Join(root, file)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, ours.ReplaceAll(data, []byte("${1}"+version)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command in a folder and returns what it printed.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
