package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// env is what all groups share: servers with a table of items.
type env struct{ cluster *rywtest.Cluster }

// item is the row that is written and read.
type item struct {
	ID   int64 `gorm:"primaryKey"`
	V    int64
	Name string
}

func (item) TableName() string { return "bench_items" }

// seeded is the item that is on every server from the beginning.
var seeded = item{ID: 1, V: 1, Name: "seeded"}

func newEnv(ctx context.Context) (_ *env, err error) {
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 2})
	if err != nil {
		return nil, err
	}
	e := &env{cluster: c}
	if err := e.seed(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *env) seed(ctx context.Context) error {
	conn, err := e.cluster.Primary().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create table bench_items (id bigserial primary key, v bigint, name text)")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "insert into bench_items (v, name) values ($1, $2)", seeded.V, seeded.Name)
	if err != nil {
		return err
	}
	return e.cluster.WaitReplicated(ctx)
}

func (e *env) close() error { return e.cluster.Close() }

// about describes the machine and the versions, for the record.
func (e *env) about(ctx context.Context) (string, error) {
	conn, err := e.cluster.Primary().Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var server string
	if err := conn.QueryRow(ctx, "show server_version").Scan(&server); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d CPUs, %s, PostgreSQL %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), server)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "gorm.io/gorm", "gorm.io/plugin/dbresolver", "gorm.io/driver/postgres", "github.com/jackc/pgx/v5":
				fmt.Fprintf(&b, ", %s %s", m.Path, m.Version)
			}
		}
	}
	return b.String(), nil
}
