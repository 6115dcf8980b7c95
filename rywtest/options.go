package rywtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Backend names the place that servers run in.
type Backend string

// The back-ends. Tests see the same with both.
const (
	// Local runs servers as processes of this machine, from PostgreSQL programs that
	// are installed on it. Linux and macOS.
	Local Backend = "local"
	// Docker runs servers in containers of a Docker engine on this machine, from the
	// image that EnvImage names. Linux and macOS.
	Docker Backend = "docker"
)

// Environment variables that fill in what Options leave open.
const (
	// EnvBackend is used when Options.Backend is empty.
	EnvBackend = "RYWTEST_BACKEND"
	// EnvBinDir is used when Options.BinDir is empty.
	EnvBinDir = "RYWTEST_PG_BIN"
	// EnvImage names the image that Docker uses; the default is DefaultImage. It is
	// an official postgres image or one made by docker/build-image.sh, and must be
	// there: nothing is downloaded.
	EnvImage = "RYWTEST_IMAGE"
	// EnvCache is the folder for the template, which is kept between runs; the
	// default is "rywtest" in the user's cache folder (os.UserCacheDir).
	EnvCache = "RYWTEST_CACHE"
)

const (
	// DefaultReplicas is the number of replicas that Options.Replicas 0 stands for.
	DefaultReplicas = 2
	// NoReplicas as Options.Replicas starts a primary alone.
	NoReplicas = -1
	// DefaultImage is the image that is used when EnvImage is empty.
	DefaultImage = "postgres:17"
	// StartTimeout bounds Start, in addition to its context.
	StartTimeout = time.Minute
)

// Options say what Start is to start. The zero value is a primary with two
// replicas.
type Options struct {
	// Replicas is the number of streaming replicas. 0 means DefaultReplicas;
	// negative, NoReplicas, means none.
	Replicas int
	// Settings are settings of postgresql.conf for all servers, by name; they win
	// over the kit's own (see the package documentation). Values need no quotes.
	Settings map[string]string
	// ReplicaSettings are further ones for standbys; they win over Settings. A
	// server that is promoted keeps them until it is made to follow another.
	ReplicaSettings map[string]string
	// InitArgs are further arguments of initdb, for example "--wal-segsize=1". Each
	// combination has a template of its own.
	InitArgs []string
	// Backend is where servers run; empty means $RYWTEST_BACKEND, and Local if that
	// is empty too.
	Backend Backend
	// BinDir is the folder of the programs postgres, initdb, pg_basebackup and
	// pg_rewind. Empty means $RYWTEST_PG_BIN, then the PATH, then what pg_config
	// says, then the usual folders, newest version first. It is for Local only.
	BinDir string
	// Partitionable puts proxies before and behind each server, so that
	// Server.Partition works. DSNs then lead to the proxy.
	Partitionable bool
}

// reserved are the settings the kit needs for itself.
var reserved = []string{
	"port", "listen_addresses", "unix_socket_directories", "primary_conninfo", "data_directory", "config_file", "hba_file",
}

func (o Options) withDefaults() Options {
	switch {
	case o.Replicas == 0:
		o.Replicas = DefaultReplicas
	case o.Replicas < 0:
		o.Replicas = 0
	}
	o.Backend = cmp.Or(o.Backend, Backend(os.Getenv(EnvBackend)), Local)
	return o
}

func (o Options) validate() error {
	switch {
	case o.Backend != Local && o.Backend != Docker:
		return fmt.Errorf("Backend: have %q, want %q or %q", o.Backend, Local, Docker)
	case o.Backend == Docker && o.BinDir != "":
		return fmt.Errorf("BinDir: have %q, want none with Backend %q", o.BinDir, Docker)
	}
	return errors.Join(checkSettings("Settings", o.Settings), checkSettings("ReplicaSettings", o.ReplicaSettings))
}

func checkSettings(field string, settings map[string]string) error {
	for name := range settings {
		if slices.Contains(reserved, strings.ToLower(name)) {
			return fmt.Errorf("%s: %s is set by rywtest", field, name)
		}
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

// settings merges: later ones win.
func settings(layers ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, layer := range layers {
		maps.Copy(all, layer)
	}
	return all
}
