//go:build linux || darwin

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/freeport"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// Node is one server: a data directory, a port, and a process while it runs.
type Node struct {
	b    *Backend
	name string
	dir  string
	log  string
	// in stands before the server, out between it and its primary. Both are nil
	// unless the cluster can be partitioned.
	in, out *proxy.Proxy

	mu      sync.Mutex // protects the fields below
	port    *freeport.Port
	conf    string   // settings as text, without addresses
	server  *process // the last one
	served  bool     // has listened: others know the port
	frozen  bool
	removed bool
}

func newNode(b *Backend, name string) (*Node, error) {
	n := &Node{b: b, name: name, dir: filepath.Join(b.base, name), log: filepath.Join(b.base, name+".log"), server: new(process)}
	var err error
	if n.port, err = freeport.Reserve(); err != nil {
		return nil, err
	}
	if err := n.prepare(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *Node) prepare() (err error) {
	if n.b.spec.Partitionable {
		if n.in, err = proxy.New(n.port.Addr(), proxy.Options{}); err != nil {
			return err
		}
		if n.out, err = proxy.New(n.port.Addr(), proxy.Options{}); err != nil {
			return err
		}
	}
	return n.b.account.mkdir(n.dir)
}

// Client is the server's address or that of the proxy before it.
func (n *Node) Client() backend.Endpoint {
	if n.in != nil {
		return endpoint(n.in)
	}
	return n.Admin()
}

// Admin is the server's own address.
func (n *Node) Admin() backend.Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return backend.Endpoint{Host: "127.0.0.1", Port: n.port.Number()}
}

func endpoint(p *proxy.Proxy) backend.Endpoint {
	return backend.Endpoint{Host: p.Host(), Port: p.Port()}
}

// SocketDir is the same for all servers of a cluster: the sockets' names differ.
func (n *Node) SocketDir() string { return n.b.sockets }

// Reach leads through the proxies of both ends, if there are any.
func (n *Node) Reach(other backend.Node) backend.Endpoint {
	target := other.Client()
	if n.out == nil {
		return target
	}
	n.out.SetTarget(target.String())
	return endpoint(n.out)
}

// DataDir is the data directory.
func (n *Node) DataDir() string { return n.dir }

// Run runs a program of the installation, as the server's user.
func (n *Node) Run(ctx context.Context, program string, args ...string) error {
	return n.b.run(ctx, n.b.base, program, args...)
}

// Wipe makes the data directory empty.
func (n *Node) Wipe(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return backend.ErrRunning
	}
	if err := os.RemoveAll(n.dir); err != nil {
		return err
	}
	return n.b.account.mkdir(n.dir)
}

// preface comes before all settings. Dynamic shared memory is in the data
// directory, not in /dev/shm, where that of a killed server would stay.
const preface = "include = '" + initialConf + "'\ndynamic_shared_memory_type = mmap\n"

// Configure writes what does not depend on the port; Start writes the rest.
func (n *Node) Configure(_ context.Context, c backend.Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return backend.ErrRunning
	}
	n.conf = preface + backend.Render(c.Settings)
	signal := filepath.Join(n.dir, "standby.signal")
	auto := map[string]string{}
	if c.PrimaryConninfo == "" {
		if err := os.RemoveAll(signal); err != nil {
			return err
		}
	} else {
		auto["primary_conninfo"] = c.PrimaryConninfo
		if err := n.b.account.writeFile(signal, ""); err != nil {
			return err
		}
	}
	return n.b.account.writeFile(filepath.Join(n.dir, "postgresql.auto.conf"), backend.Render(auto))
}

// Partition makes both proxies pass nothing.
func (n *Node) Partition(context.Context) error { return n.both((*proxy.Proxy).Partition) }

// Heal lets them pass everything again, what was held back first.
func (n *Node) Heal(context.Context) error { return n.both((*proxy.Proxy).Heal) }

func (n *Node) both(f func(*proxy.Proxy)) error {
	if n.in == nil {
		return backend.ErrNotPartitionable
	}
	f(n.in)
	f(n.out)
	return nil
}

// Log returns the end of the log, or why it cannot be read.
func (n *Node) Log() string { return tail(n.log, 0) }

// tail returns the end of a file, at most 16 KiB of what follows from.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	defer f.Close()
	const most = 16 << 10
	text := make([]byte, most)
	if size := fileSize(f); size-most > from {
		from = size - most
	}
	count, _ := f.ReadAt(text, from) // io.EOF when less is there
	return string(text[:count])
}

func fileSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
