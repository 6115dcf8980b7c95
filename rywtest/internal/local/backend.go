//go:build linux || darwin

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/pgbin"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/sysid"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/watchdog"
)

// Backend keeps the servers of one cluster below one temporary directory.
type Backend struct {
	spec    backend.Spec
	install pgbin.Install
	account account
	dog     *watchdog.Dog
	base    string   // holds everything
	sockets string   // holds the unix sockets
	dirs    []string // to remove at the end

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	close  func() error

	running sync.WaitGroup // programs; added to under mu while not closed

	mu     sync.Mutex // protects the fields below
	closed bool
	nodes  []*Node
}

// maxSocketDir is the longest folder for sockets: the address of a unix socket
// holds 103 bytes on macOS (107 on Linux), and ".s.PGSQL.12345.lock" follows.
const maxSocketDir = 103 - len("/.s.PGSQL.12345.lock")

// Open finds PostgreSQL and makes the directory of a cluster.
func Open(ctx context.Context, spec backend.Spec) (backend.Backend, error) {
	install, err := pgbin.Find(ctx, spec.BinDir)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	b := &Backend{spec: spec, install: install, account: account}
	if b.dog, err = watchdog.New(); err != nil {
		return nil, err
	}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.close = sync.OnceValue(b.shutdown)
	if err := b.makeDirs(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// DirEnvVar names the folder that clusters live in, before any other.
const DirEnvVar = "RYWTEST_DIR"

func (b *Backend) makeDirs() (err error) {
	parent, err := filepath.Abs(cmp.Or(os.Getenv(DirEnvVar), usualParent()))
	if err != nil {
		return err
	}
	if b.base, err = b.tempDir(parent); err != nil {
		return err
	}
	if b.sockets = filepath.Join(b.base, "s"); len(b.sockets) <= maxSocketDir {
		return b.account.mkdir(b.sockets)
	}
	b.sockets, err = b.tempDir("/tmp")
	return err
}

// tempDir makes a directory that Close, or the watchdog, removes. Its name is so
// random that the watchdog can be told before it exists.
func (b *Backend) tempDir(parent string) (string, error) {
	dir := randomName(parent, "rywtest-")
	if err := b.account.reach(dir); err != nil {
		return "", err
	}
	if err := b.dog.GuardDir(dir); err != nil {
		return "", err
	}
	b.dirs = append(b.dirs, dir)
	return dir, b.account.mkdir(dir)
}

func randomName(parent, prefix string) string {
	return filepath.Join(parent, fmt.Sprintf("%s%016x", prefix, rand.Uint64()))
}

// NewNode makes a node without a database.
func (b *Backend) NewNode(_ context.Context, name string) (backend.Node, error) {
	n, err := newNode(b, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.Join(backend.ErrClosed, n.close())
	}
	b.nodes = append(b.nodes, n)
	return n, nil
}

// Seed fills the nodes with copies of the template, under one new identity.
func (b *Backend) Seed(ctx context.Context, nodes ...backend.Node) error {
	template, err := b.template(ctx)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	identity := sysid.New()
	return backend.Each(nodes, func(node backend.Node) error {
		if err := b.account.copyTree(ctx, template, node.DataDir()); err != nil {
			return err
		}
		return setIdentity(node.DataDir(), identity)
	})
}

// Close ends all programs, then removes all files, then the watchdog.
func (b *Backend) Close() error { return b.close() }

func (b *Backend) shutdown() error {
	b.mu.Lock()
	b.closed = true
	nodes := b.nodes
	b.mu.Unlock()
	b.cancel(backend.ErrClosed)
	err := backend.Each(nodes, (*Node).close)
	b.running.Wait()
	for _, dir := range b.dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return errors.Join(err, b.dog.Release()) // a second try
	}
	return b.dog.Dismiss()
}
