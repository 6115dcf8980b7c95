package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
	"github.com/jackc/pgx/v5"
)

// replicas is how many standbys there are, whoever is the primary.
const replicas = 3

// settings keep what the run needs: standbys that were away find the WAL they
// missed; checkpoints, and with them proofs of the timeline, come often; a link
// that went silent is given up within seconds.
var settings = map[string]string{
	"wal_keep_size":               "96MB", // all of which a server that is rewound fetches
	"min_wal_size":                "80MB",
	"max_wal_size":                "128MB",
	"checkpoint_timeout":          "30s",
	"max_connections":             "300",
	"shared_buffers":              "32MB",
	"wal_receiver_timeout":        "5s",
	"wal_sender_timeout":          "5s",
	"bgwriter_lru_maxpages":       "0",   // or a standby that crashes is where it was at once
	"autovacuum":                  "off", // what it writes is not what is looked for
	"max_standby_streaming_delay": "5s",
}

// site is the cluster with the network around it. Every link that can be
// partitioned leads through a proxy of its own; the kit's methods go past them.
type site struct {
	*rywtest.Cluster
	// clients leads from the workers to each server, upstreams from each server
	// to the primary.
	clients, upstreams map[*rywtest.Server]*proxy.Proxy
	// moving leads from the workers to whoever is the primary.
	moving *proxy.Proxy
}

// openSite starts the cluster, the network and the table of keys. The site must
// be closed. The standbys have further settings of their own.
func openSite(ctx context.Context, keys int64, all, ofStandbys map[string]string) (*site, error) {
	c, err := rywtest.Start(ctx, rywtest.Options{
		Replicas: replicas, Settings: all, ReplicaSettings: ofStandbys, Backend: rywtest.Local,
	})
	if err != nil {
		return nil, err
	}
	s := &site{Cluster: c, clients: map[*rywtest.Server]*proxy.Proxy{}, upstreams: map[*rywtest.Server]*proxy.Proxy{}}
	if err := errors.Join(s.connect(), s.prepare(ctx, keys)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect opens the proxies.
func (s *site) connect() (err error) {
	for _, server := range s.Servers() {
		if s.clients[server], err = proxy.New(addr(server), proxy.Options{}); err != nil {
			return err
		}
		if s.upstreams[server], err = proxy.New(addr(s.Primary()), proxy.Options{}); err != nil {
			return err
		}
	}
	s.moving, err = proxy.New(addr(s.Primary()), proxy.Options{})
	return err
}

// prepare makes the table, with a record of the writes that a server took, and has the standbys follow through the proxies.
func (s *site) prepare(ctx context.Context, keys int64) error {
	err := s.exec(ctx, s.Primary(),
		"create table items (id bigint primary key, v bigint not null) with (fillfactor = 50)",
		"create table taken (id bigint, v bigint, at timestamptz default clock_timestamp())",
		"create function take() returns trigger language plpgsql as 'begin insert into taken values (new.id, new.v); return null; end'",
		"create trigger take after update on items for each row execute function take()",
		fmt.Sprintf("insert into items select id, 0 from generate_series(1, %d) id", keys))
	for _, r := range s.Replicas() {
		err = errors.Join(err, s.reroute(ctx, r))
	}
	return errors.Join(err, s.WaitReplicated(ctx))
}

// reroute has a standby receive through its proxy from now on.
func (s *site) reroute(ctx context.Context, standby *rywtest.Server) error {
	p := s.upstreams[standby]
	return s.exec(ctx, standby,
		fmt.Sprintf("alter system set primary_conninfo = 'host=%s port=%d user=postgres application_name=%s sslmode=disable gssencmode=disable'",
			p.Host(), p.Port(), standby.Name()),
		"select pg_reload_conf()")
}

// exec runs statements on a server, past the proxies.
func (s *site) exec(ctx context.Context, server *rywtest.Server, statements ...string) error {
	conn, err := server.Conn(ctx)
	if err != nil {
		return err
	}
	defer hangUp(ctx, conn)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %s: %w", server.Name(), sql, err)
		}
	}
	return nil
}

// ask returns one value, past the proxies.
func ask[T any](ctx context.Context, server *rywtest.Server, sql string) (v T, err error) {
	conn, err := server.Conn(ctx)
	if err != nil {
		return v, err
	}
	defer hangUp(ctx, conn)
	if err := conn.QueryRow(ctx, sql).Scan(&v); err != nil {
		return v, fmt.Errorf("%s: %s: %w", server.Name(), sql, err)
	}
	return v, nil
}

func hangUp(ctx context.Context, conn *pgx.Conn) {
	_ = conn.Close(context.WithoutCancel(ctx)) // given up either way
}

// standbys are the servers other than the primary, in their order.
func (s *site) standbys() []*rywtest.Server {
	var list []*rywtest.Server
	for _, server := range s.Servers() {
		if server != s.Primary() {
			list = append(list, server)
		}
	}
	return list
}

// leadTo has everything that wants a primary led to this one, but for one standby,
// or none. Connections there are and what they held back are gone.
func (s *site) leadTo(primary, but *rywtest.Server) {
	for _, p := range append(s.upstreamsOf(s.Servers()...), s.moving) {
		if but == nil || p != s.upstreams[but] {
			p.SetTarget(addr(primary))
		}
		p.CutAll()
		p.Heal()
	}
}

func (s *site) upstreamsOf(servers ...*rywtest.Server) []*proxy.Proxy {
	var list []*proxy.Proxy
	for _, server := range servers {
		list = append(list, s.upstreams[server])
	}
	return list
}

// primaryLinks are the workers' ways to the primary.
func (s *site) primaryLinks() []*proxy.Proxy {
	return []*proxy.Proxy{s.clients[s.Primary()], s.moving}
}

// replicaDSNs lead to every server, since each may be a standby at times.
func (s *site) replicaDSNs() []string {
	var list []string
	for _, server := range s.Servers() {
		list = append(list, dsn(s.clients[server].Addr(), ""))
	}
	return list
}

// primaryDSN leads to the primary, whoever that is.
func (s *site) primaryDSN(endpoint string) string {
	if endpoint == endpointMoving {
		return dsn(s.moving.Addr(), "")
	}
	var hosts []string
	for _, server := range s.Servers() {
		hosts = append(hosts, s.clients[server].Addr())
	}
	return dsn(strings.Join(hosts, ","), "&target_session_attrs=read-write")
}

// connectTimeout is how long a worker's connection may take to be opened.
const connectTimeout = 3 * time.Second

func dsn(hosts, more string) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&connect_timeout=%d%s", hosts, int(connectTimeout.Seconds()), more)
}

func addr(s *rywtest.Server) string { return net.JoinHostPort(s.Host(), strconv.Itoa(s.Port())) }

// Close ends the proxies and the cluster.
func (s *site) Close() error {
	var errs []error
	for _, p := range append(s.upstreamsOf(s.Servers()...), s.moving) {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, p := range s.clients {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, s.Cluster.Close())...)
}
