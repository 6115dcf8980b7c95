//go:build linux || darwin

package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/freeport"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/sysid"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// serverPort is the port that servers listen on in their containers.
const serverPort = 5432

// Node is one server: a container on two networks. On the engine's own network it
// has a port that this machine reaches; on the private one it has an address that
// the other servers reach.
type Node struct {
	b         *Backend
	container string
	address   string       // on the private network
	in        *proxy.Proxy // before the server; nil unless the cluster can be partitioned
	log       tail

	mu      sync.Mutex     // protects the fields below
	port    *freeport.Port // on this machine
	made    bool           // the container exists
	joined  bool           // it was connected to the private network
	served  bool           // it has run: others know the port
	up      bool           // its first process runs
	cut     bool           // off the private network
	frozen  bool
	server  *process // the last one
	removed bool
}

// newNode makes the i-th node.
func newNode(b *Backend, name string, i int) (*Node, error) {
	n := &Node{b: b, container: b.id + "-" + name, server: new(process)}
	var err error
	if n.address, err = b.address(i); err != nil {
		return nil, err
	}
	if n.port, err = freeport.Reserve(); err != nil {
		return nil, err
	}
	if !b.spec.Partitionable {
		return n, nil
	}
	if n.in, err = proxy.New(n.port.Addr(), proxy.Options{}); err != nil {
		n.port.Release()
		return nil, err
	}
	return n, nil
}

// close frees what the node has in this process.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.removed {
		return nil
	}
	n.removed = true
	n.port.Release()
	if n.in == nil {
		return nil
	}
	return n.in.Close()
}

// Client is the server's port on this machine or that of the proxy before it.
func (n *Node) Client() backend.Endpoint {
	if n.in != nil {
		return backend.Endpoint{Host: n.in.Host(), Port: n.in.Port()}
	}
	return n.Admin()
}

// Admin is the server's port on this machine.
func (n *Node) Admin() backend.Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return backend.Endpoint{Host: "127.0.0.1", Port: n.port.Number()}
}

// SocketDir is empty: the socket is in the container.
func (n *Node) SocketDir() string { return "" }

// Reach is the other's address on the private network.
func (n *Node) Reach(other backend.Node) backend.Endpoint {
	return backend.Endpoint{Host: other.(*Node).address, Port: serverPort}
}

// DataDir is the data directory in the container.
func (n *Node) DataDir() string { return dataDir }

// controlHead is how much of pg_control its structure fits in.
const controlHead = 1024

// unpack fills the data directory and shows the control file.
var unpack = fmt.Sprintf("tar -xf %s; head -c %d data/global/pg_control", packed, controlHead)

// patch writes the bytes $1 at the start of pg_control and in each segment's
// header at $4, and the checksum $2 at $3 in pg_control.
const patch = `cd data
put() { printf "$1" | dd of="$2" bs=1 seek="$3" conv=notrunc 2>&1; }
put "$1" global/pg_control 0
put "$2" global/pg_control "$3"
for f in pg_wal/????????????????????????; do put "$1" "$f" "$4"; done`

// seed unpacks a new database cluster and gives it an identity.
func (n *Node) seed(ctx context.Context, id uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	control, err := n.script(ctx, unpack)
	if err != nil {
		return err
	}
	crc, at, err := sysid.Control([]byte(control), id)
	if err != nil {
		return fmt.Errorf("pg_control: %w", err)
	}
	_, err = n.script(ctx, patch, octal(binary.NativeEndian.AppendUint64(nil, id)),
		octal(binary.NativeEndian.AppendUint32(nil, crc)), strconv.Itoa(at), strconv.Itoa(sysid.SegmentOffset))
	return err
}

// octal writes bytes as the format of printf(1).
func octal(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	return b.String()
}

// Wipe makes the data directory empty.
func (n *Node) Wipe(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return backend.ErrRunning
	}
	_, err := n.script(ctx, "rm -rf data; mkdir -m 700 data")
	return err
}

// initialConf is the postgresql.conf of initdb, which ours includes.
const initialConf = "initdb.conf"

const configure = `cd data
printf %s "$1" >postgresql.conf
printf %s "$2" >postgresql.auto.conf
if [ "$3" = standby ]; then : >standby.signal; else rm -f standby.signal; fi`

// Configure writes the settings.
func (n *Node) Configure(ctx context.Context, c backend.Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return backend.ErrRunning
	}
	addresses := map[string]string{
		"listen_addresses": "*", "port": strconv.Itoa(serverPort), "unix_socket_directories": "/tmp",
	}
	role, auto := "primary", map[string]string{}
	if c.PrimaryConninfo != "" {
		role, auto["primary_conninfo"] = "standby", c.PrimaryConninfo
	}
	conf := "include = '" + initialConf + "'\n" + backend.Render(c.Settings) + backend.Render(addresses)
	_, err := n.script(ctx, configure, conf, backend.Render(auto), role)
	return err
}

// Run runs a program in the container.
func (n *Node) Run(ctx context.Context, program string, args ...string) error {
	n.mu.Lock()
	err := n.ensure(ctx)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = n.b.exec(ctx, n.container, append([]string{program}, args...)...)
	if err == nil || ctx.Err() == nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return errors.Join(err, n.quell(ctx))
}

// Partition takes the container off the private network and makes the proxy pass
// nothing.
func (n *Node) Partition(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.in == nil {
		return backend.ErrNotPartitionable
	}
	n.in.Partition()
	if n.cut {
		return nil
	}
	if err := n.ensure(ctx); err != nil {
		return err
	}
	_, err := n.b.do(ctx, "network", "disconnect", n.b.id, n.container)
	n.cut = err == nil
	return err
}

// Heal puts it back under the same address, and lets everything pass that was held
// back.
func (n *Node) Heal(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.in == nil {
		return backend.ErrNotPartitionable
	}
	if n.cut {
		if err := n.join(ctx); err != nil {
			return err
		}
		n.cut = false
	}
	n.in.Heal()
	return nil
}

// Log returns the end of what the server has written, of all its runs.
func (n *Node) Log() string { return n.log.String() }
