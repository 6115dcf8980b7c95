// Package pgbin finds the PostgreSQL server programs of this machine.
package pgbin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// EnvVar names the folder of the programs, before any search.
const EnvVar = "RYWTEST_PG_BIN"

// MinMajor is the oldest version the kit works with: older ones cannot say
// whether replay has really paused (pg_get_wal_replay_pause_state is new in 14).
const MinMajor = 14

// ErrNotFound is returned when there is no usable PostgreSQL.
var ErrNotFound = errors.New("no PostgreSQL server programs found")

// Install is one installation of PostgreSQL.
type Install struct {
	// Dir holds the programs.
	Dir string
	// Version is what "postgres --version" prints.
	Version string
	// Major is the major version in it.
	Major int
}

// Path returns the path of one program.
func (i Install) Path(program string) string { return filepath.Join(i.Dir, program) }

// programs are the ones without which a folder is of no use.
var programs = []string{"postgres", "initdb", "pg_basebackup", "pg_rewind"}

// finder holds what the search asks of its surroundings.
type finder struct {
	getenv   func(string) string
	lookPath func(string) (string, error)
	output   func(ctx context.Context, name string, args ...string) (string, error)
	folders  []string
}

// Find returns the installation in dir or, if dir is empty, the first one of:
// the folder named by RYWTEST_PG_BIN, the PATH, what pg_config says, the usual
// folders, newest version first.
func Find(ctx context.Context, dir string) (Install, error) {
	f := finder{getenv: os.Getenv, lookPath: exec.LookPath, output: output, folders: usualFolders}
	return f.find(ctx, dir)
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return strings.TrimSpace(string(out)), err
}

func (f finder) find(ctx context.Context, dir string) (Install, error) {
	if dir != "" {
		return f.named(ctx, "Options.BinDir", dir)
	}
	if dir := f.getenv(EnvVar); dir != "" {
		return f.named(ctx, EnvVar, dir)
	}
	for _, candidate := range f.candidates(ctx) {
		if missing(candidate) == "" {
			return f.install(ctx, candidate)
		}
	}
	return Install{}, fmt.Errorf("%w: looked at %s (not set), PATH, pg_config and %s\n%s",
		ErrNotFound, EnvVar, strings.Join(f.folders, ", "), hint)
}

// named checks a folder that somebody asked for: no other one will do.
func (f finder) named(ctx context.Context, by, dir string) (Install, error) {
	if program := missing(dir); program != "" {
		return Install{}, fmt.Errorf("%w: %s says %q, which has no %s\n%s", ErrNotFound, by, dir, program, hint)
	}
	return f.install(ctx, dir)
}

// missing returns the first program that dir lacks, or "".
func missing(dir string) string {
	for _, program := range programs {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return program
		}
	}
	return ""
}

func (f finder) candidates(ctx context.Context) []string {
	var dirs []string
	if path, err := f.lookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if path, err := f.lookPath("pg_config"); err == nil {
		if dir, err := f.output(ctx, path, "--bindir"); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, expand(f.folders)...)
}

func (f finder) install(ctx context.Context, dir string) (Install, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Install{}, fmt.Errorf("folder of PostgreSQL: %w", err)
	}
	path := filepath.Join(dir, "postgres")
	text, err := f.output(ctx, path, "--version")
	if err != nil {
		return Install{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	major, err := parseMajor(text)
	if err != nil {
		return Install{}, fmt.Errorf("%s: %w", path, err)
	}
	if major < MinMajor {
		return Install{}, fmt.Errorf("%w: %s is version %d, want %d or newer\n%s", ErrNotFound, path, major, MinMajor, hint)
	}
	return Install{Dir: dir, Version: text, Major: major}, nil
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func parseMajor(text string) (int, error) {
	found := versionPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("have version text %q, want \"postgres (PostgreSQL) N\"", text)
	}
	return strconv.Atoi(found[1])
}
