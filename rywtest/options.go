package rywtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
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
	// EnvDir is the folder that the clusters of Local live in. The default is $TMPDIR
	// if that is set, else /dev/shm if that has 4 GB of room, else /tmp.
	EnvDir = "RYWTEST_DIR"
)

const (
	// DefaultReplicas is the number of replicas that Options.Replicas 0 stands for.
	DefaultReplicas = 2
	// NoReplicas as Options.Replicas starts a primary alone.
	NoReplicas = -1
	// DefaultImage is the image that is used when EnvImage is empty.
	DefaultImage = "postgres:17"
	// StartTimeout bounds Start, in addition to its context.
	StartTimeout = 2 * time.Minute
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

func (o Options) withDefaults() Options {
	switch {
	case o.Replicas == 0:
		o.Replicas = DefaultReplicas
	case o.Replicas < 0:
		o.Replicas = 0
	}
	o.Backend = cmp.Or(o.Backend, Backend(os.Getenv(EnvBackend)), Local)
	// The caller may change its own while the cluster lives.
	o.Settings, o.ReplicaSettings, o.InitArgs = maps.Clone(o.Settings), maps.Clone(o.ReplicaSettings), slices.Clone(o.InitArgs)
	return o
}

func (o Options) validate() error {
	switch {
	case o.Backend != Local && o.Backend != Docker:
		return fmt.Errorf("Backend: have %q, want %q or %q", o.Backend, Local, Docker)
	case o.Backend == Docker && o.BinDir != "":
		return fmt.Errorf("BinDir: have %q, want none with Backend %q", o.BinDir, Docker)
	}
	return errors.Join(
		checkSettings("Settings", o.Settings), checkSettings("ReplicaSettings", o.ReplicaSettings),
		checkInitArgs(o.InitArgs), o.checkReplicas(),
	)
}

// checkReplicas keeps a replica from waiting for a place at the primary that it
// will never get. A bad number is for PostgreSQL to judge.
func (o Options) checkReplicas() error {
	senders, err := strconv.Atoi(settings(baseSettings, o.Settings)["max_wal_senders"])
	if err == nil && senders < o.Replicas {
		return fmt.Errorf("Replicas: have %d, want at most %d, which is max_wal_senders (see Settings)", o.Replicas, senders)
	}
	return nil
}
