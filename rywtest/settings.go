package rywtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reserved are the settings the kit needs for itself, and directives that could
// change them unseen.
var reserved = []string{
	"port", "listen_addresses", "unix_socket_directories", "primary_conninfo", "data_directory", "config_file", "hba_file",
	"dynamic_shared_memory_type", "include", "include_if_exists", "include_dir",
}

// settingName is what PostgreSQL takes as a name (src/backend/utils/misc/guc-file.l).
var settingName = regexp.MustCompile(`^[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)*$`)

func checkSettings(field string, settings map[string]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		lower := strings.ToLower(name)
		switch {
		case !settingName.MatchString(name):
			return fmt.Errorf("%s: %q is not a name of a setting", field, name)
		case slices.Contains(reserved, lower):
			return fmt.Errorf("%s: %s is set by rywtest", field, name)
		case seen[lower]:
			return fmt.Errorf("%s: %s is there twice, in upper and lower case", field, lower)
		case strings.Contains(settings[name], "\x00"):
			return fmt.Errorf("%s: %s: value %q holds a zero byte", field, name, settings[name])
		}
		seen[lower] = true
	}
	return nil
}

// baseSettings are for speed and for tidiness, and to have room; whatever decides
// what readers see is left at PostgreSQL's defaults.
var baseSettings = map[string]string{
	"fsync":                       "off", // matters when the machine crashes, not when processes do
	"wal_level":                   "replica",
	"hot_standby":                 "on",
	"max_connections":             "200",
	"max_wal_senders":             "20",
	"max_replication_slots":       "20",
	"wal_keep_size":               "1GB",  // replicas that were away find what they missed
	"wal_retrieve_retry_interval": "50ms", // 5 s by default: how soon a replica reconnects
	"timezone":                    "UTC",
	"log_timezone":                "UTC",
	"log_line_prefix":             "%m [%p] %b ",
	"log_checkpoints":             "off",
	"unix_socket_permissions":     "0700",
}

// settings merges: later ones win. Names are in lower case then, for PostgreSQL
// makes no difference.
func settings(layers ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, layer := range layers {
		for name, value := range layer {
			all[strings.ToLower(name)] = value
		}
	}
	return all
}

// reservedArgs and reservedFlags are the arguments of initdb that the kit needs for
// itself, or that make it do something else.
var reservedArgs = []string{
	"pgdata", "waldir", "username", "auth", "auth-host", "auth-local", "pwprompt", "sync-only", "show", "version", "help",
}

const (
	reservedFlags = "ADSUVWXs?"
	flagsWithText = "ELTc" // what follows is their argument
)

func checkInitArgs(args []string) error {
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "\x00"):
			return fmt.Errorf("InitArgs: %q holds a zero byte", arg)
		case reservedArg(arg):
			return fmt.Errorf("InitArgs: %s is set by rywtest", arg)
		}
	}
	return nil
}

// reservedArg understands shortened names ("--user=x") and flags that are written
// together ("-kD").
func reservedArg(arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		return slices.ContainsFunc(reservedArgs, func(full string) bool { return strings.HasPrefix(full, name) })
	}
	flags, short := strings.CutPrefix(arg, "-")
	if end := strings.IndexAny(flags, flagsWithText); end >= 0 {
		flags = flags[:end]
	}
	return short && strings.ContainsAny(flags, reservedFlags)
}
