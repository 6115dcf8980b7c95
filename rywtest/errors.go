package rywtest

import (
	"errors"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/pgbin"
)

// Errors to compare with errors.Is.
var (
	// ErrNoPostgres: no PostgreSQL programs were found, or only unusable ones. The
	// message says where they were looked for and which command installs them.
	ErrNoPostgres = pgbin.ErrNotFound
	// ErrNoDocker: there is no program docker, no engine answers it, or the engine
	// does not have the image. The message says which.
	ErrNoDocker = backend.ErrNoEngine
	// ErrClosed: the cluster was closed, by Close or by a signal.
	ErrClosed = backend.ErrClosed
	// ErrNotRunning: the operation needs a running server.
	ErrNotRunning = backend.ErrNotRunning
	// ErrRunning: the server to start is running.
	ErrRunning = backend.ErrRunning
	// ErrFrozen: the operation needs a server that can answer; Thaw it first.
	ErrFrozen = backend.ErrFrozen
	// ErrNotPartitionable: Options.Partitionable was not set.
	ErrNotPartitionable = backend.ErrNotPartitionable
	// ErrNotStandby: the operation needs a server in recovery.
	ErrNotStandby = errors.New("server is not a standby")
)
