// Package backend is the border between the test kit and the place its servers
// run in: processes of this machine, or containers. The kit knows
// PostgreSQL (settings, SQL, pg_rewind); a back-end knows how to keep a data
// directory, run programs beside it, reach the servers and make them suffer.
package backend

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// Errors that every back-end returns under the same circumstances.
var (
	ErrClosed           = errors.New("cluster is closed")
	ErrNotRunning       = errors.New("server is not running")
	ErrRunning          = errors.New("server is already running")
	ErrFrozen           = errors.New("server is frozen")
	ErrNotPartitionable = errors.New("cluster was started without Options.Partitionable")
	ErrNoEngine         = errors.New("no Docker engine that can run servers")
)

// Spec is what one cluster needs to know when its back-end opens.
type Spec struct {
	// BinDir holds the PostgreSQL programs; empty means search.
	BinDir string
	// InitArgs are further arguments of initdb.
	InitArgs []string
	// Settings are the settings of all servers. Those that PostgreSQL records
	// in the data directory become part of the template.
	Settings map[string]string
	// Partitionable asks for nodes that can be cut off.
	Partitionable bool
}

// Backend keeps the nodes of one cluster.
type Backend interface {
	// NewNode reserves a node: addresses and an empty data directory.
	NewNode(ctx context.Context, name string) (Node, error)
	// Seed fills the data directories of nodes with identical copies of one
	// new database cluster, from a cached template.
	Seed(ctx context.Context, nodes ...Node) error
	// Close ends all servers and programs and removes every trace but the
	// template. It is idempotent.
	Close() error
}

// Node is one server with its data directory. Its methods may be called from
// several goroutines.
type Node interface {
	// Client is where applications reach the server.
	Client() Endpoint
	// Admin is where the kit reaches it; a partition does not cut it.
	Admin() Endpoint
	// SocketDir is the folder of the server's unix socket, empty if it has none.
	SocketDir() string
	// Reach returns where this node finds another one.
	Reach(other Node) Endpoint

	// DataDir is the data directory as programs started by Run see it.
	DataDir() string
	// Configure writes all settings; the server must not be running.
	Configure(ctx context.Context, c Config) error
	// Wipe empties the data directory; the server must not be running.
	Wipe(ctx context.Context) error
	// Run runs a PostgreSQL program beside the data directory.
	Run(ctx context.Context, program string, args ...string) error

	// Start starts the server and returns when it listens.
	Start(ctx context.Context) error
	// Shutdown asks the server to end and waits until it has.
	Shutdown(ctx context.Context, m Mode) error
	// Kill ends all processes of the server at once and waits until none is
	// left, so that it can be started again.
	Kill(ctx context.Context) error
	// KillProcess kills one process of the server, by the id it knows itself.
	KillProcess(ctx context.Context, pid int) error
	// Freeze stops all processes of the server without ending them.
	Freeze(ctx context.Context) error
	// Thaw lets them go on.
	Thaw(ctx context.Context) error
	// Partition cuts the node off from clients and other nodes.
	Partition(ctx context.Context) error
	// Heal ends a partition.
	Heal(ctx context.Context) error

	// Done returns a channel that is closed when the server is not running.
	Done() <-chan struct{}
	// PID is the first process of the server, 0 when it is not running.
	PID() int
	// Log returns the end of the server's log.
	Log() string
}

// Mode says how a server is asked to end.
type Mode int

// The modes of PostgreSQL's manual, 19.5 "Shutting Down the Server".
const (
	// Fast disconnects clients and writes a checkpoint.
	Fast Mode = iota
	// Immediate leaves without a checkpoint; the next start recovers.
	Immediate
)

// Endpoint is a TCP address.
type Endpoint struct {
	Host string
	Port int
}

// String returns host:port.
func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }
