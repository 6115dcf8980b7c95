package pgbin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeInstall makes a folder with programs; postgres prints a version.
func fakeInstall(t *testing.T, dir, version string, programs ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		text := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func nothing() finder {
	return finder{
		getenv:   func(string) string { return "" },
		lookPath: func(string) (string, error) { return "", exec.ErrNotFound },
		output:   output,
		folders:  []string{"/nowhere/*/bin"},
	}
}

func TestNothingFoundNamesTheCommands(t *testing.T) {
	_, err := nothing().find(context.Background(), "")
	if !errors.Is(err, ErrNotFound) {
		t.Fatalf("have %v, want ErrNotFound", err)
	}
	for _, want := range []string{"apt-get install -y postgresql", "dnf install -y postgresql-server", "brew install postgresql", EnvVar, "/nowhere/*/bin"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q:\n%v", want, err)
		}
	}
}

func TestNamedFolderIsNotReplacedByAnother(t *testing.T) {
	root := t.TempDir()
	good := fakeInstall(t, filepath.Join(root, "good"), "17.1", programs...)
	f := nothing()
	f.folders = []string{good}
	for by, find := range map[string]func() (Install, error){
		"Options.BinDir": func() (Install, error) { return f.find(context.Background(), "/nowhere") },
		EnvVar: func() (Install, error) {
			f := f
			f.getenv = func(string) string { return "/nowhere" }
			return f.find(context.Background(), "")
		},
	} {
		_, err := find()
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), by) || !strings.Contains(err.Error(), "/nowhere") {
			t.Errorf("%s: have error %v, want ErrNotFound naming the variable and the folder", by, err)
		}
	}
}

func TestSearchOrder(t *testing.T) {
	root := t.TempDir()
	path := fakeInstall(t, filepath.Join(root, "path"), "16.1", programs...)
	config := fakeInstall(t, filepath.Join(root, "config"), "16.2", programs...)
	fakeInstall(t, filepath.Join(root, "usual", "9", "bin"), "9.6", programs...)
	newest := fakeInstall(t, filepath.Join(root, "usual", "17", "bin"), "17.3", programs...)
	env := fakeInstall(t, filepath.Join(root, "env"), "15.4", programs...)

	f := nothing()
	f.folders = []string{filepath.Join(root, "usual", "*", "bin")}
	step := func(want string) {
		t.Helper()
		have, err := f.find(context.Background(), "")
		if err != nil || have.Dir != want {
			t.Fatalf("have %q (%v), want %q", have.Dir, err, want)
		}
	}
	step(newest)
	f.lookPath = func(name string) (string, error) {
		if name == "pg_config" {
			return "/some/pg_config", nil
		}
		return "", exec.ErrNotFound
	}
	real := f.output
	f.output = func(ctx context.Context, name string, args ...string) (string, error) {
		if name == "/some/pg_config" {
			return config, nil
		}
		return real(ctx, name, args...)
	}
	step(config)
	f.lookPath = func(name string) (string, error) {
		if name == "postgres" {
			return filepath.Join(path, "postgres"), nil
		}
		return "/some/pg_config", nil
	}
	step(path)
	f.getenv = func(string) string { return env }
	step(env)
}

func TestSymlinkOnPathLeadsToTheRealFolder(t *testing.T) {
	root := t.TempDir()
	real := fakeInstall(t, filepath.Join(root, "real"), "17.1", programs...)
	link := filepath.Join(root, "postgres")
	if err := os.Symlink(filepath.Join(real, "postgres"), link); err != nil {
		t.Fatal(err)
	}
	f := nothing()
	f.lookPath = func(string) (string, error) { return link, nil }
	f.output = func(ctx context.Context, name string, args ...string) (string, error) {
		if name == link {
			return "", errors.New("not pg_config")
		}
		return output(ctx, name, args...)
	}
	have, err := f.find(context.Background(), "")
	if want, _ := filepath.EvalSymlinks(real); err != nil || have.Dir != want {
		t.Fatalf("have %q (%v), want %q", have.Dir, err, want)
	}
}

func TestUnusableFoldersAreSkippedOrRefused(t *testing.T) {
	root := t.TempDir()
	half := fakeInstall(t, filepath.Join(root, "half"), "17.1", "postgres", "initdb")
	full := fakeInstall(t, filepath.Join(root, "full"), "17.1", programs...)
	old := fakeInstall(t, filepath.Join(root, "old"), "13.9", programs...)
	f := nothing()
	f.folders = []string{half, full}
	if have, err := f.find(context.Background(), ""); err != nil || have.Dir != full || have.Major != 17 {
		t.Errorf("have %+v (%v), want the folder that is complete", have, err)
	}
	if _, err := f.find(context.Background(), half); err == nil || !strings.Contains(err.Error(), "pg_basebackup") {
		t.Errorf("have error %v, want one that names the missing program", err)
	}
	if _, err := f.find(context.Background(), old); err == nil || !strings.Contains(err.Error(), "version 13") {
		t.Errorf("have error %v, want one about the version", err)
	}
}

func TestExpandPutsNewestFirst(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"pgsql-9.6/bin", "pgsql-10/bin", "pgsql-17/bin"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	have := expand([]string{filepath.Join(root, "pgsql-*", "bin")})
	for i, want := range []string{"pgsql-17", "pgsql-10", "pgsql-9.6"} {
		if i >= len(have) || filepath.Base(filepath.Dir(have[i])) != want {
			t.Fatalf("have %v, want %s at %d", have, want, i)
		}
	}
}
