package rywtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/docker"
	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/local"
)

// Cluster is a running primary with its replicas. All methods may be called from
// several goroutines.
type Cluster struct {
	options Options

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	opened chan struct{}   // closed when Start has returned
	back   backend.Backend // nil if it could not be opened; set before opened is closed

	made atomic.Int64 // servers, those that failed included

	mu       sync.Mutex // protects the fields below
	primary  *Server
	first    *Server
	replicas []*Server
}

// Start starts a primary and its replicas, each replica streaming and having
// replayed all there is. A template is made at the first use, which takes about a
// second more; then two replicas take about half a second.
//
// The context bounds Start alone, not the life of the cluster, which must be
// ended by Close. If Start fails nothing is left of it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("rywtest: options: %w", err)
	}
	c := &Cluster{options: o, opened: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	living.add(c)
	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, errStartTimeout)
	defer cancel()
	err := c.start(ctx)
	close(c.opened)
	if err != nil {
		return nil, fmt.Errorf("rywtest: start: %w", errors.Join(err, c.Close()))
	}
	return c, nil
}

var errStartTimeout = fmt.Errorf("not done after %v: %w", StartTimeout, context.DeadlineExceeded)

func (c *Cluster) start(ctx context.Context) error {
	ctx, stop := c.bound(ctx)
	defer stop()
	var err error
	if c.back, err = c.options.open(ctx); err != nil {
		return err
	}
	if err := c.makeServers(ctx); err != nil {
		return err
	}
	if err := c.primary.configure(ctx, nil); err != nil {
		return err
	}
	if err := c.primary.Start(ctx); err != nil {
		return err
	}
	return backend.Each(c.replicas, func(s *Server) error { return s.begin(ctx, c.primary) })
}

// open opens the back-end.
func (o Options) open(ctx context.Context) (backend.Backend, error) {
	spec := backend.Spec{
		BinDir:        o.BinDir,
		InitArgs:      o.InitArgs,
		Settings:      settings(baseSettings, o.Settings),
		Partitionable: o.Partitionable,
	}
	if o.Backend == Docker {
		return docker.Open(ctx, spec, cmp.Or(os.Getenv(EnvImage), DefaultImage))
	}
	return local.Open(ctx, spec)
}

// bound returns a context that also ends when the cluster is closed.
func (c *Cluster) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// makeServers makes all servers with one new database, none of them running.
func (c *Cluster) makeServers(ctx context.Context) error {
	nodes := make([]backend.Node, 1+c.options.Replicas)
	for i := range nodes {
		s, err := c.newServer(ctx)
		if err != nil {
			return err
		}
		c.admit(s)
		nodes[i] = s.node
	}
	return c.back.Seed(ctx, nodes...)
}

// newServer makes a server without a database: the first one is the primary.
func (c *Cluster) newServer(ctx context.Context) (*Server, error) {
	name := "primary"
	if n := c.made.Add(1) - 1; n > 0 {
		name = fmt.Sprintf("replica%d", n)
	}
	node, err := c.back.NewNode(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Server{c: c, name: name, node: node}, nil
}

// admit makes a server visible.
func (c *Cluster) admit(s *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.primary == nil {
		c.primary, c.first = s, s
		return
	}
	c.replicas = append(c.replicas, s)
}

// promoted makes a server the primary.
func (c *Cluster) promoted(s *Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = s
}

// Primary returns the server that takes writes: the one that was promoted last,
// before any promotion the one named "primary".
func (c *Cluster) Primary() *Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

// Replicas returns the servers that began as replicas, in the order they were
// made, whatever they are now. The slice is the caller's.
func (c *Cluster) Replicas() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.replicas)
}

// Replica returns the i-th of Replicas, from 0. It panics if there is none.
func (c *Cluster) Replica(i int) *Server { return c.Replicas()[i] }

// Servers returns all servers: the one that began as the primary, then Replicas.
func (c *Cluster) Servers() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Server{c.first}, c.replicas...)
}

// AddReplica makes one more replica, from a base backup of the primary, and
// returns when it streams and has replayed what the primary had when it was
// asked.
func (c *Cluster) AddReplica(ctx context.Context) (*Server, error) {
	ctx, stop := c.bound(ctx)
	defer stop()
	primary := c.Primary()
	s, err := c.newServer(ctx)
	if err != nil {
		return nil, fmt.Errorf("rywtest: add replica: %w", err)
	}
	if err := s.copyFrom(ctx, primary); err != nil {
		return nil, fmt.Errorf("rywtest: add replica: %w", err)
	}
	c.admit(s)
	return s, nil
}

// WaitReplicated waits until all standbys that run have replayed what the primary
// had written when it was asked. The error of a standby that has not says how far
// it is. A standby that cannot get there (frozen, paused, partitioned, diverged)
// makes it wait until the context ends.
func (c *Cluster) WaitReplicated(ctx context.Context) error {
	primary := c.Primary()
	want, err := primary.Position(ctx)
	if err != nil {
		return err
	}
	return backend.Each(c.Servers(), func(s *Server) error {
		if s == primary || !s.Running() {
			return nil
		}
		if standby, err := s.isStandby(ctx); !standby {
			return err
		}
		return s.WaitCaughtUp(ctx, want)
	})
}

// Close ends all servers at once and removes all files but the template. It may
// be called again, returns the same error then, and may be called while another
// method runs, which fails.
func (c *Cluster) Close() error {
	err := c.close()
	living.remove(c)
	return err
}

// close is Close without the bookkeeping, for the signal handler.
func (c *Cluster) close() error {
	c.cancel(ErrClosed)
	<-c.opened
	if c.back == nil {
		return nil
	}
	if err := c.back.Close(); err != nil {
		return fmt.Errorf("rywtest: close: %w", err)
	}
	return nil
}
