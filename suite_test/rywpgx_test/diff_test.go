package rywpgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// env is where an operation runs, and writes down everything it can see.
type env struct {
	*testing.T
	ctx  context.Context
	db   *gorm.DB
	pool *sql.DB
	lines
}

type lines struct{ all []string }

func (l *lines) log(format string, args ...any) { l.all = append(l.all, fmt.Sprintf(format, args...)) }

var pid = regexp.MustCompile(`\b(pid|process) \d+|stmt\w*_[0-9a-f]{16,}`)

// err writes down an error as applications see it.
func (l *lines) err(what string, err error) {
	if err == nil {
		l.log("%s: ok", what)
		return
	}
	var chain []string
	for e := err; e != nil; e = errors.Unwrap(e) {
		chain = append(chain, fmt.Sprintf("%T", e))
	}
	l.log("%s: %s %v", what, pid.ReplaceAllString(err.Error(), "PID"), chain)
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		l.log("  %s %s %s|%s|%s|%s|%s|%s|%d", pg.Severity, pg.Code, pg.Message, pg.Detail, pg.Hint, pg.TableName, pg.ColumnName, pg.ConstraintName, pg.Position)
	}
	l.log("  canceled %v deadline %v retry %v", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), pgconn.SafeToRetry(err))
}

// query writes down rows and what is known of their columns.
func (l *lines) query(rows *sql.Rows, err error) {
	if err != nil {
		l.err("query", err)
		return
	}
	for {
		l.set(rows)
		if !rows.NextResultSet() {
			break
		}
		l.log("next result set")
	}
	l.err("rows", rows.Err())
	l.err("close", rows.Close())
}

func (l *lines) set(rows *sql.Rows) {
	types, err := rows.ColumnTypes()
	if err != nil {
		l.err("types", err)
	}
	for _, c := range types {
		length, hasLength := c.Length()
		p, s, hasDecimal := c.DecimalSize()
		null, hasNull := c.Nullable()
		l.log("column %s %s %s %d %v %d %d %v %v %v", c.Name(), c.DatabaseTypeName(), c.ScanType(), length, hasLength, p, s, hasDecimal, null, hasNull)
	}
	for rows.Next() {
		row := make([]any, len(types))
		for i := range row {
			row[i] = new(any)
		}
		if err := rows.Scan(row...); err != nil {
			l.err("scan", err)
		}
		for i := range row {
			v := *row[i].(*any)
			l.log("value %T %v", v, v)
		}
	}
}

func (l *lines) result(res sql.Result, err error) {
	l.err("exec", err)
	if err == nil {
		n, err := res.RowsAffected()
		l.log("affected %d %v", n, err)
		id, err := res.LastInsertId()
		l.log("inserted %d %v", id, err)
	}
}

// exec runs texts on the pool.
func (e *env) exec(texts ...string) {
	for _, text := range texts {
		res, err := e.pool.ExecContext(e.ctx, text)
		e.result(res, err)
	}
}

func (e *env) raw(what string, do func(context.Context, *pgx.Conn) error) {
	e.err(what, onPgx(e.db.WithContext(e.ctx), do))
}

func (e *env) conn(what string, do func(context.Context, *sql.Conn) error) {
	e.err(what, onConn(e.db.WithContext(e.ctx), do))
}

// begin starts a transaction that ends with the operation at the latest.
func (e *env) begin(opts *sql.TxOptions) *sql.Tx {
	tx, err := e.pool.BeginTx(e.ctx, opts)
	e.err("begin", err)
	return tx
}

// slow are the operations that wait; how statements are sent makes no difference
// to them.
var slow = map[string]bool{"cancelled": true, "cancelled transaction": true, "cancelled rows": true, "migrations": true}

var diffModes = map[string]settings{
	"cache_statement": {thorough: true},
	"cache_describe":  {params: "default_query_exec_mode=cache_describe"},
	"describe_exec":   {params: "default_query_exec_mode=describe_exec"},
	"exec":            {params: "default_query_exec_mode=exec"},
	"simple_protocol": {simple: true},
	"PrepareStmt":     {prepare: true, implicit: true},
	"time zone":       {params: "TimeZone=Asia/Tokyo"},
}

// TestNothingElseDiffers runs every operation on the plain dialector, on ours
// before it is bound, and on ours with everything observed.
func TestNothingElseDiffers(t *testing.T) {
	for mode, s := range diffModes {
		t.Run(mode, func(t *testing.T) {
			h := newHooks()
			h.all = &who{floor: true}
			plain, bound, unbound := s.plain(t), s.ours(t, h), s.ours(t, nil)
			for _, name := range slices.Sorted(maps.Keys(operations)) {
				if slow[name] && !s.thorough {
					continue
				}
				want := record(t, plain, operations[name])
				compare(t, name, record(t, bound, operations[name]), want)
				if s.thorough {
					compare(t, name+", not bound", record(t, unbound, operations[name]), want)
				}
			}
			if len(h.take()) == 0 {
				t.Error("nothing was observed")
			}
		})
	}
}

func record(t *testing.T, db *gorm.DB, op func(*env)) []string {
	t.Helper()
	fresh(t)
	e := &env{T: t, ctx: t.Context(), db: db, pool: pool(t, db)}
	op(e)
	if n := e.pool.Stats().InUse; n != 0 {
		e.log("connections in use: %d", n)
	}
	return e.all
}

// fresh makes the tables that the operations use.
func fresh(t *testing.T) {
	t.Helper()
	conn, err := cluster.Primary().Conn(t.Context())
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `drop schema if exists diff cascade; create schema diff;
		create table diff.t (id serial primary key, v int unique, s text);
		create table diff.d (v int unique deferrable initially deferred);
		drop table if exists things`)
	must(t, err)
}

func compare(t *testing.T, what string, have, want []string) {
	t.Helper()
	for i := range max(len(have), len(want)) {
		var h, w string
		if i < len(have) {
			h = have[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if h != w {
			t.Errorf("%s: line %d:\n have %s\n want %s\n\nwhole:\n%s", what, i, h, w, strings.Join(want, "\n"))
			return
		}
	}
}

// TestOptionsAreKept opens with every option there is.
func TestOptionsAreKept(t *testing.T) {
	open := func(t *testing.T, ours bool) []string {
		var l lines
		users := []string{"postgres", "rotated"}
		next := 0
		s := settings{params: "TimeZone=Asia/Tokyo", options: []stdlib.OptionOpenDB{
			stdlib.OptionBeforeConnect(func(_ context.Context, cfg *pgx.ConnConfig) error {
				cfg.User = users[next%2]
				next++
				cfg.Tracer = tracer{&l}
				cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { l.log("notice %s", n.Message) }
				l.log("before connect %s", cfg.User)
				return nil
			}),
			stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
				l.log("after connect") // the dialector replaces it: the DSN has a time zone
				return nil
			}),
			stdlib.OptionResetSession(func(context.Context, *pgx.Conn) error {
				l.log("reset")
				return nil
			}),
			stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool {
				l.log("ping?")
				return true
			}),
		}}
		var db *gorm.DB
		if ours {
			h := newHooks()
			h.all = &who{floor: true}
			db = s.ours(t, nil)
			must(t, connector(t, db).Bind(h, 0))
			pool(t, db).SetMaxIdleConns(0) // what was opened before is not admitted
			pool(t, db).SetMaxIdleConns(2)
			next, l.all = 1, nil
		} else {
			db = s.plain(t)
			pool(t, db).SetMaxIdleConns(0)
			pool(t, db).SetMaxIdleConns(2)
			next, l.all = 1, nil
		}
		p := pool(t, db)
		a, err := p.Conn(t.Context())
		must(t, err)
		b, err := p.Conn(t.Context())
		must(t, err)
		for _, c := range []*sql.Conn{a, b} {
			var user, zone string
			must(t, c.QueryRowContext(t.Context(), "select current_user, current_setting('timezone')").Scan(&user, &zone))
			l.log("user %s zone %s", user, zone)
			_, err := c.ExecContext(t.Context(), "do $$begin raise notice 'hello'; end$$")
			must(t, err)
			must(t, c.Close())
		}
		must(t, p.PingContext(t.Context()))
		var at time.Time
		must(t, p.QueryRowContext(t.Context(), "select timestamp '2020-01-02 03:04:05'").Scan(&at))
		l.log("at %s", at)
		return l.all
	}
	conn, err := cluster.Primary().Conn(t.Context())
	must(t, err)
	_, err = conn.Exec(t.Context(), "create role rotated superuser login")
	must(t, err)
	must(t, conn.Close(t.Context()))
	compare(t, "options", open(t, true), open(t, false))
}

// tracer is one that an application brings along.
type tracer struct{ l *lines }

func (tr tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	tr.l.log("start %s", d.SQL)
	return ctx
}

func (tr tracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	tr.l.log("end %s %v", d.CommandTag, d.Err)
}

func (tr tracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, d pgx.TracePrepareStartData) context.Context {
	tr.l.log("prepare %s", d.SQL)
	return ctx
}

func (tr tracer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}
