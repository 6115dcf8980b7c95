// Package doctor examines a primary and its replicas for what the library's guarantee
// rests on, and says what it found, what that means and how to change it. It changes
// nothing: its one write is a WAL record that no table holds.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"gorm.io/driver/postgres"
)

// Defaults of Options.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultWait        = 5 * time.Second
	DefaultConnections = 8
)

// Options say what is examined. Zero durations and numbers take the defaults.
type Options struct {
	// Primary and Replicas are connection strings, as the application uses them.
	Primary  string
	Replicas []string
	// Source is the folder of the application's Go code. Empty: it is not looked at.
	Source string
	// Timeout bounds each step with a server, connecting included.
	Timeout time.Duration
	// Wait bounds how long a write is followed to a replica.
	Wait time.Duration
	// Connections is how many are opened at the same time to each address to find out
	// who answers there.
	Connections int
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Connections <= 1 {
		o.Connections = DefaultConnections
	}
	return o
}

// Run examines everything and returns what was found. What cannot be examined is a
// finding, too; the error is ctx's, or of options that make no sense, and contains no
// password.
func Run(ctx context.Context, o Options) (*Report, error) {
	d := &doctor{Options: o.withDefaults(), report: &Report{}}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	for _, s := range d.servers() {
		if s.conn == nil {
			continue
		}
		d.examine(ctx, s)
	}
	d.compare(ctx)
	d.follow(ctx)
	d.read(o.Source)
	return d.report, context.Cause(ctx)
}

// doctor is one examination.
type doctor struct {
	Options
	report   *Report
	primary  *server
	replicas []*server
}

func (d *doctor) servers() []*server { return append([]*server{d.primary}, d.replicas...) }

// open makes the servers of the options and connects to them.
func (d *doctor) open(ctx context.Context) error {
	at := func(role, dsn string) (*server, error) {
		src, err := pgdial.FromConfig(&postgres.Config{DSN: dsn})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		return &server{role: role, name: src.Name(), src: src}, nil
	}
	var err error
	if d.primary, err = at("primary", d.Primary); err != nil {
		return err
	}
	for i, dsn := range d.Options.Replicas {
		s, err := at(fmt.Sprintf("replica %d", i+1), dsn)
		if err != nil {
			return err
		}
		d.replicas = append(d.replicas, s)
	}
	for _, s := range d.servers() {
		d.connect(ctx, s)
	}
	return nil
}

func (d *doctor) close() {
	for _, s := range d.servers() {
		if s != nil && s.conn != nil {
			closeConn(s.conn)
		}
	}
}

// step is a context for one step with a server.
func (d *doctor) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d.Timeout, fmt.Errorf("no answer within %s", d.Timeout))
}
