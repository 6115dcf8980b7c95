package pgbin

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// usualFolders are where packages put the programs without putting them on the
// PATH.
var usualFolders = []string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // Fedora, RHEL: PGDG packages
	"/usr/libexec/postgresql*",          // Alpine
	"/usr/lib/postgresql*/bin",          // openSUSE
	"/opt/homebrew/opt/postgresql*/bin", // Homebrew, Apple silicon
	"/usr/local/opt/postgresql*/bin",    // Homebrew, Intel
	"/Library/PostgreSQL/*/bin",         // EDB installer for macOS
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// InstallCommands are the commands that install the programs, one per package
// manager.
var InstallCommands = []string{aptInstall, dnfInstall, brewInstall}

const (
	aptInstall  = "sudo apt-get install -y postgresql"
	dnfInstall  = "sudo dnf install -y postgresql-server"
	brewInstall = "brew install postgresql@17"
)

// hint names the one command per platform.
const hint = "install it with" +
	"\n  Debian, Ubuntu:  " + aptInstall +
	"\n  Fedora, RHEL:    " + dnfInstall +
	"\n  macOS:           " + brewInstall +
	"\nor set " + EnvVar + " to the folder that holds postgres and initdb"

// expand returns the folders that match, each pattern's newest version first.
func expand(patterns []string) []string {
	var dirs []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the only error is a bad pattern
		slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

var numberPattern = regexp.MustCompile(`\d+`)

// version returns the first number of the last folder that has one: 9 for
// .../9.6/bin, 15 for .../postgresql@15/bin, 0 for none.
func version(path string) int {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		if digits := numberPattern.FindString(filepath.Base(path)); digits != "" {
			n, _ := strconv.Atoi(digits) // digits only
			return n
		}
	}
	return 0
}
