package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/rywtest/proxy"
)

// network is the delay each way between clients and servers, and between servers.
const network = 500 * time.Microsecond

// site is a primary and replicas with a network between all of them and their
// clients. What is done by the kit goes past the network.
type site struct {
	*rywtest.Cluster
	servers []*rywtest.Server // the primary first
	taps    []*tap            // from clients to each server
	links   []*proxy.Proxy    // from the primary to each replica
	nextKey int64
}

// row is what is written and read under load. Replica and Port come with the
// answer: who gave it.
type row struct {
	ID      int64 `gorm:"primaryKey"`
	V       int64
	Replica bool `gorm:"->;-:migration"`
	Port    int  `gorm:"->;-:migration"`
}

func (row) TableName() string { return "bench_rows" }

const whoAnswers = "pg_is_in_recovery() as replica, inet_server_port() as port"

// openSite starts servers with the network between them.
func openSite(ctx context.Context, replicas int) (*site, error) {
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: replicas, Settings: map[string]string{
		"max_connections": "400",
		"autovacuum":      "off", // what it writes is not what is measured
	}})
	if err != nil {
		return nil, err
	}
	s := &site{Cluster: c, servers: c.Servers(), nextKey: 1}
	if err := errors.Join(s.connect(ctx), s.exec(ctx, s.Primary(), "create table bench_rows (id bigint primary key, v bigint not null) with (fillfactor = 50)")); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, s.WaitReplicated(ctx)
}

// connect opens the network and has the replicas follow through it.
func (s *site) connect(ctx context.Context) error {
	for _, server := range s.servers {
		t, err := newTap(server, network)
		if err != nil {
			return err
		}
		s.taps = append(s.taps, t)
	}
	for _, r := range s.Replicas() {
		p, err := proxy.New(net.JoinHostPort(s.Primary().Host(), strconv.Itoa(s.Primary().Port())), proxy.Options{Delay: network})
		if err != nil {
			return err
		}
		s.links = append(s.links, p)
		err = s.exec(ctx, r, fmt.Sprintf("alter system set primary_conninfo = 'host=%s port=%d user=postgres application_name=%s sslmode=disable gssencmode=disable'",
			p.Host(), p.Port(), r.Name()), "select pg_reload_conf()")
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *site) close() error {
	var errs []error
	for _, t := range s.taps {
		errs = append(errs, t.Close())
	}
	for _, p := range s.links {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, s.Cluster.Close())...)
}

// lag is how long the primary's log takes to the replicas; 0 is the network's delay.
func (s *site) lag(d time.Duration) {
	for _, p := range s.links {
		p.SetDelay(max(d, network))
	}
}

// exec runs statements on a server, past the network.
func (s *site) exec(ctx context.Context, server *rywtest.Server, statements ...string) error {
	conn, err := server.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %s: %w", server.Name(), sql, err)
		}
	}
	return nil
}

// rows makes n rows of version 1 that are on every server, and returns the first.
func (s *site) rows(ctx context.Context, n int) (int64, error) {
	first := s.nextKey
	s.nextKey += int64(n)
	err := s.exec(ctx, s.Primary(), fmt.Sprintf("insert into bench_rows select id, 1 from generate_series(%d, %d) id", first, s.nextKey-1))
	return first, errors.Join(err, s.WaitReplicated(ctx))
}

// addresses lead through the network.
func (s *site) addresses(rywpgx bool) addresses {
	at := addresses{primary: s.taps[0].dsn, rywpgx: rywpgx}
	for _, t := range s.taps[1:] {
		at.replicas = append(at.replicas, t.dsn)
	}
	return at
}

// sent is what passed on the wire.
type sent struct {
	statements int64 // of any kind, those that ride along included
	questions  int64 // those for a position
}

func (a sent) minus(b sent) sent {
	return sent{a.statements - b.statements, a.questions - b.questions}
}

// traffic is what was sent to each server, the primary first.
func (s *site) traffic() []sent {
	var all []sent
	for _, t := range s.taps {
		all = append(all, sent{t.statements.Load(), t.questions.Load()})
	}
	return all
}
