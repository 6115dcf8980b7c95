package rywpgx_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

const everyType = `select 1::smallint, 2::int, 3::bigint, 1.5::real, 2.5::float8, 12.345::numeric(10,3), true,
	'text', 'varchar'::varchar(10), 'c'::char(3), '\xdeadbeef'::bytea, date '2020-02-29', time '12:34:56.789',
	timestamp '2020-02-29 12:34:56.789', timestamptz '2020-02-29 12:34:56.789+05', interval '1 day 2 hours',
	'{1,2,null}'::int[], '{"a": [1, null]}'::jsonb, '{"a":1}'::json, 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::uuid,
	null::int, null::text, '10.0.0.1/8'::inet, 5::oid, '(1,2)'::point, int4range(1,5), '<a/>'::xml, b'101'`

type thing struct {
	ID        uint
	Name      string `gorm:"size:40;index"`
	At        time.Time
	Price     float64
	Data      []byte
	Owner     *uint
	DeletedAt gorm.DeletedAt
}

// operations are everything that is compared, by name.
var operations = merge(statements, transactions, connections)

func merge(all ...map[string]func(*env)) map[string]func(*env) {
	m := map[string]func(*env){}
	for _, some := range all {
		maps.Copy(m, some)
	}
	return m
}

var statements = map[string]func(*env){
	"types": func(e *env) { e.query(e.pool.QueryContext(e.ctx, everyType)) },
	"arguments": func(e *env) {
		at := time.Date(2021, 3, 4, 5, 6, 7, 8000, time.FixedZone("x", 3600))
		for _, a := range []any{1, int64(2), 2.5, "x", true, []byte{1, 2}, at, nil, sql.NullInt64{}, []int32{1, 2}} {
			e.query(e.pool.QueryContext(e.ctx, "select $1::text", fmt.Sprint(a)))
			e.query(e.pool.QueryContext(e.ctx, "select $1", a))
		}
		e.query(e.pool.QueryContext(e.ctx, "select $1::timestamptz, $1::timestamptz::text", at))
		e.query(e.pool.QueryContext(e.ctx, "select $1::timestamp", at))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int[], $2::bytea", []int{1, 2}, []byte("b")))
	},
	"pgx's own arguments": func(e *env) {
		e.query(e.pool.QueryContext(e.ctx, "select @a::int, @b::text", pgx.NamedArgs{"a": 1, "b": "x"}))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int", pgx.QueryExecModeSimpleProtocol, 1))
		e.query(e.pool.QueryContext(e.ctx, "insert into diff.t (v) values ($1) returning v", pgx.QueryExecModeExec, 1))
	},
	"affected rows": func(e *env) {
		e.exec("insert into diff.t (v) values (1), (2)", "update diff.t set v = v + 10", "delete from diff.t where v = 11",
			"create table diff.x (a int)", "drop table diff.x", "select * from diff.t", "", ";", "-- nothing", "set work_mem = '5MB'")
		res, err := e.pool.ExecContext(e.ctx, "insert into diff.t (v) select generate_series($1::int, $2::int)", 100, 199)
		e.result(res, err)
	},
	"returning": func(e *env) {
		e.query(e.pool.QueryContext(e.ctx, "insert into diff.t (v, s) values ($1, $2), (2, null) returning *", 1, "x"))
		e.query(e.pool.QueryContext(e.ctx, "update diff.t set s = 'y' where v = $1 returning s, v", 77))
		e.query(e.pool.QueryContext(e.ctx, "with x as (delete from diff.t returning v) select * from x order by v"))
	},
	"several statements": func(e *env) {
		e.exec("insert into diff.t (v) values (1); insert into diff.t (v) values (2)",
			"insert into diff.t (v) values (3); insert into diff.t (v) values (1)",
			"begin; insert into diff.t (v) values (4); commit", "begin; insert into diff.t (v) values (5); rollback")
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t; select 2, 'x'"))
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t order by v"))
	},
	"errors": func(e *env) {
		e.exec("insert into diff.t (v) values (1)", "insert into diff.t (v) values (1)", "syntax error", "select * from diff.missing",
			"select missing from diff.t", "insert into diff.d values (1), (1)", "insert into diff.t (id) values (null)", "select 'x'::int",
			"vacuum diff.t", "create index concurrently on diff.t (s)", "select 1/0", "copy diff.t to stdout", "do $$begin raise exception 'oh' using errcode = 'ZZ001', detail = 'd', hint = 'h'; end$$")
		e.query(e.pool.QueryContext(e.ctx, "select 1/(3-i) from generate_series(1, 5) i"))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int", "not a number"))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int"))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int", 1, 2))
		e.query(e.pool.QueryContext(e.ctx, "select $1::int", struct{}{}))
		e.query(e.pool.QueryContext(e.ctx, "insert into diff.t (v) values ($1) returning v", 1))
		_, err := e.pool.ExecContext(e.ctx, "insert into diff.t (v) values ($1)", 1)
		e.err("duplicate", err)
		e.err("no rows", e.pool.QueryRowContext(e.ctx, "select v from diff.t where v = -1").Scan(new(int)))
	},
	"gorm's errors": func(e *env) {
		db := e.db.Session(&gorm.Session{Context: e.ctx})
		translate := *db.Config
		translate.TranslateError = true
		db.Config = &translate
		e.err("create", db.Table("diff.t").Create(map[string]any{"v": 1}).Error)
		e.err("duplicate", db.Table("diff.t").Create(map[string]any{"v": 1}).Error)
		e.err("missing", db.Table("diff.t").Take(&map[string]any{}, "v = ?", 5).Error)
		e.err("where", db.Table("diff.t").Delete(nil).Error)
	},
	"timeouts of the server": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, "set statement_timeout = '20ms'")
			e.err("set", err)
			_, err = c.ExecContext(ctx, "select pg_sleep(5)")
			e.err("sleep", err)
			_, err = c.ExecContext(ctx, "reset statement_timeout")
			return err
		})
	},
}

func rawConn(dc any) *pgx.Conn { return dc.(interface{ Conn() *pgx.Conn }).Conn() }
