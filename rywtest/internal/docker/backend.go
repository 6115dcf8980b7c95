//go:build linux || darwin

package docker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/sysid"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/watchdog"
)

// labelName marks everything that belongs to a cluster; the value is its id.
const labelName = "gorm-ryw.rywtest"

// Backend keeps the containers and the network of one cluster.
type Backend struct {
	spec   backend.Spec
	client string // path of the command line
	id     string // of the cluster, the start of all names
	dog    *watchdog.Dog
	image  string       // the template
	subnet netip.Prefix // of the private network

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	close  func() error

	running sync.WaitGroup // commands; added to under mu while not closed
	servers sync.WaitGroup // servers; added to under mu while not closed

	mu     sync.Mutex // protects the fields below
	closed bool
	nodes  []*Node
}

// Open makes the network of a cluster, and the template if there is none yet, from
// an image that has PostgreSQL's programs on its PATH and a user postgres.
func Open(ctx context.Context, spec backend.Spec, image string) (backend.Backend, error) {
	client, err := findClient()
	if err != nil {
		return nil, err
	}
	b := &Backend{spec: spec, client: client, id: fmt.Sprintf("rywtest-%016x", rand.Uint64())}
	if b.dog, err = watchdog.New(); err != nil {
		return nil, err
	}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.close = sync.OnceValue(b.shutdown)
	err = b.dog.GuardCommand(b.sweepCommand())
	if err == nil {
		err = b.prepare(ctx, image)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Backend) prepare(ctx context.Context, image string) (err error) {
	if b.image, err = b.template(ctx, image); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	if b.subnet, err = b.makeNetwork(ctx); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

// labels are the arguments that mark something as the cluster's, and tell people
// which process made it.
func (b *Backend) labels() []string {
	return []string{"--label=" + labelName + "=" + b.id, fmt.Sprintf("--label=%s.pid=%d", labelName, os.Getpid())}
}

// NewNode reserves a port and an address; the container is made when needed.
func (b *Backend) NewNode(_ context.Context, name string) (backend.Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	n, err := newNode(b, name, len(b.nodes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.nodes = append(b.nodes, n)
	return n, nil
}

// Seed makes the containers, which the engine fills with the template, and gives
// the database clusters in them one new identity.
func (b *Backend) Seed(ctx context.Context, nodes ...backend.Node) error {
	identity := sysid.New()
	return backend.Each(nodes, func(node backend.Node) error {
		return node.(*Node).seed(ctx, identity)
	})
}

// Close removes all containers, and with them what runs in them, then the network.
func (b *Backend) Close() error { return b.close() }

func (b *Backend) shutdown() error {
	b.mu.Lock()
	b.closed = true
	nodes := b.nodes
	b.mu.Unlock()
	b.cancel(backend.ErrClosed)
	b.running.Wait()
	err := remove(context.Background(), b.call, labelName+"="+b.id)
	if err == nil {
		b.servers.Wait() // ended with their containers
	}
	err = errors.Join(err, backend.Each(nodes, (*Node).close))
	if err != nil {
		return errors.Join(err, b.dog.Release()) // a second try
	}
	return b.dog.Dismiss()
}

// remove removes whatever has a label: containers and with them their volumes, then
// networks.
func remove(ctx context.Context, call caller, label string) error {
	filter := "--filter=label=" + label
	return errors.Join(
		removeAll(ctx, call, []string{"ps", "--all", "--quiet", filter}, "rm", "--force", "--volumes"),
		removeAll(ctx, call, []string{"network", "ls", "--quiet", filter}, "network", "rm"),
	)
}

// caller is Backend.call.
type caller func(ctx context.Context, args ...string) (string, error)

// removeAll removes what a command lists.
func removeAll(ctx context.Context, call caller, list []string, remove ...string) error {
	ids, err := call(ctx, list...)
	if err != nil || ids == "" {
		return err
	}
	_, err = call(ctx, append(remove, strings.Fields(ids)...)...)
	return err
}

// sweepCommand is remove for the watchdog. It looks several times: a network cannot
// go while a container is just leaving it.
func (b *Backend) sweepCommand() string {
	client := "'" + strings.ReplaceAll(b.client, "'", `'\''`) + "'"
	return strings.NewReplacer("docker", client, "LABEL", labelName+"="+b.id).Replace(
		`for n in 1 2 3; do [ $n = 1 ] || sleep 1; ` +
			`ids=$(docker ps -aq --filter label=LABEL); [ -z "$ids" ] || docker rm -fv $ids; ` +
			`ids=$(docker network ls -q --filter label=LABEL); [ -z "$ids" ] || docker network rm $ids; done`)
}
