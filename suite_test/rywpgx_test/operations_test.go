package rywpgx_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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

var operations = map[string]func(e *env){
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
	"transactions": func(e *env) {
		tx := e.begin(nil)
		e.query(tx.Query("insert into diff.t (v) values (1) returning v"))
		e.err("commit", tx.Commit())
		e.err("again", tx.Commit())
		e.err("rollback", tx.Rollback())
		tx = e.begin(nil)
		_, err := tx.Exec("insert into diff.t (v) values (2)")
		e.err("exec", err)
		e.err("rollback", tx.Rollback())
		tx = e.begin(nil)
		_, err = tx.Exec("insert into diff.t (v) values (1)")
		e.err("duplicate", err)
		_, err = tx.Exec("select 1")
		e.err("failed", err)
		e.err("commit", tx.Commit())
		tx = e.begin(nil)
		_, err = tx.Exec("insert into diff.d values (1), (1)")
		e.err("deferred", err)
		e.err("commit", tx.Commit())
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t"))
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.d"))
	},
	"transaction options": func(e *env) {
		for _, level := range []sql.IsolationLevel{
			sql.LevelDefault, sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead,
			sql.LevelSnapshot, sql.LevelSerializable, sql.LevelLinearizable, sql.LevelWriteCommitted,
		} {
			for _, ro := range []bool{false, true} {
				tx := e.begin(&sql.TxOptions{Isolation: level, ReadOnly: ro})
				if tx == nil {
					continue
				}
				e.query(tx.Query("select current_setting('transaction_isolation'), current_setting('transaction_read_only')"))
				_, err := tx.Exec("insert into diff.t (v) values (1)")
				e.err("write", err)
				e.err("rollback", tx.Rollback())
			}
		}
	},
	"nested transactions": func(e *env) {
		e.err("outer", e.db.WithContext(e.ctx).Transaction(func(tx *gorm.DB) error {
			e.err("exec", tx.Exec("insert into diff.t (v) values (1)").Error)
			e.err("inner", tx.Transaction(func(tx *gorm.DB) error {
				return tx.Exec("insert into diff.t (v) values (2)").Error
			}))
			e.err("failing", tx.Transaction(func(tx *gorm.DB) error {
				return tx.Exec("insert into diff.t (v) values (2)").Error
			}))
			tx.SavePoint("a")
			e.err("exec", tx.Exec("insert into diff.t (v) values (3)").Error)
			tx.RollbackTo("a")
			e.err("exec", tx.Exec("release savepoint a").Error)
			return nil
		}))
		e.err("rolled back", e.db.WithContext(e.ctx).Transaction(func(tx *gorm.DB) error {
			e.err("exec", tx.Exec("insert into diff.t (v) values (9)").Error)
			return errors.New("no")
		}))
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t order by v"))
	},
	"transactions as text": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			for _, text := range []string{
				"begin", "set transaction isolation level serializable", "set transaction read write", "insert into diff.t (v) values (1)",
				"savepoint a", "insert into diff.t (v) values (1)", "rollback to a", "commit and chain", "set transaction isolation level repeatable read",
				"insert into diff.t (v) values (2)", "rollback and chain", "insert into diff.t (v) values (3)", "end",
				"start transaction", "select 1/0", "commit", "commit", "rollback",
				"begin", "insert into diff.t (v) values (4)", "prepare transaction 'diff'", "commit prepared 'diff'",
				"begin; set local work_mem = '5MB'", "set transaction isolation level serializable", "insert into diff.t (v) values (5); commit; select 1",
			} {
				res, err := c.ExecContext(ctx, text)
				e.log("%s", text)
				e.result(res, err)
			}
			rows, err := c.QueryContext(ctx, "select v from diff.t order by v")
			e.query(rows, err)
			return nil
		})
	},
	"snapshot of a transaction begun as text": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, "begin isolation level repeatable read")
			e.err("begin", err)
			e.exec("insert into diff.t (v) values (1)") // elsewhere, before the first query
			rows, err := c.QueryContext(ctx, "select v from diff.t")
			e.query(rows, err)
			e.exec("insert into diff.t (v) values (2)")
			rows, err = c.QueryContext(ctx, "select v from diff.t")
			e.query(rows, err)
			_, err = c.ExecContext(ctx, "commit and chain")
			e.err("chain", err)
			e.exec("insert into diff.t (v) values (3)")
			rows, err = c.QueryContext(ctx, "select v from diff.t")
			e.query(rows, err)
			_, err = c.ExecContext(ctx, "rollback")
			return err
		})
	},
	"rows in a transaction": func(e *env) {
		tx := e.begin(nil)
		rows, err := tx.Query("select * from generate_series(1, 1000)")
		e.err("query", err)
		e.log("next %v", rows.Next())
		_, err = tx.Exec("insert into diff.t (v) values (1)")
		e.err("busy", err)
		e.err("close", rows.Close())
		_, err = tx.Exec("insert into diff.t (v) values (1)")
		e.err("exec", err)
		e.err("commit", tx.Commit())
	},
	"rows closed late": func(e *env) {
		rows, err := e.pool.QueryContext(e.ctx, "insert into diff.t (v) select generate_series(1, 2000) returning v")
		e.err("query", err)
		for range 3 {
			e.log("next %v", rows.Next())
		}
		var n int
		e.err("other", e.pool.QueryRowContext(e.ctx, "select count(*) from diff.t").Scan(&n))
		e.err("close", rows.Close())
		e.err("other", e.pool.QueryRowContext(e.ctx, "select count(*) from diff.t").Scan(&n))
		e.log("rows %d", n)
	},
	"large": func(e *env) {
		big := strings.Repeat("x", 3<<20)
		var n int
		e.err("in", e.pool.QueryRowContext(e.ctx, "insert into diff.t (s) values ($1) returning length(s)", big).Scan(&n))
		var back string
		e.err("out", e.pool.QueryRowContext(e.ctx, "select s from diff.t").Scan(&back))
		e.log("%d %v", n, back == big)
		var sum int
		rows, err := e.pool.QueryContext(e.ctx, "select i, repeat('y', 100) from generate_series(1, 20000) i")
		e.err("many", err)
		for rows.Next() {
			var i int
			var s string
			if err := rows.Scan(&i, &s); err != nil {
				e.err("scan", err)
			}
			sum += i + len(s)
		}
		e.err("rows", rows.Err())
		e.log("sum %d", sum)
	},
	"cancelled": func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		_, err := e.pool.ExecContext(ctx, "insert into diff.t (v) values (1)")
		e.err("before", err)
		ctx, cancel = context.WithTimeout(e.ctx, 800*time.Millisecond)
		_, err = e.pool.ExecContext(ctx, "select pg_sleep(30)")
		e.err("deadline", err)
		cancel()
		ctx, cancel = context.WithTimeout(e.ctx, 800*time.Millisecond)
		rows, err := e.pool.QueryContext(ctx, "select pg_sleep(30), $1::int", 1)
		e.err("deadline", err)
		if rows != nil {
			e.err("close", rows.Close())
		}
		cancel()
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t"))
	},
	"cancelled transaction": func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		tx, err := e.pool.BeginTx(ctx, nil)
		e.err("begin", err)
		_, err = tx.Exec("insert into diff.t (v) values (1)")
		e.err("exec", err)
		cancel()
		e.log("commit failed: %v", tx.Commit() != nil)
		ctx, cancel = context.WithTimeout(e.ctx, 800*time.Millisecond)
		defer cancel()
		tx, err = e.pool.BeginTx(ctx, nil)
		e.err("begin", err)
		_, err = tx.ExecContext(ctx, "select pg_sleep(30)")
		e.log("failed: %v", err != nil)
		e.log("commit failed: %v", tx.Commit() != nil)
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t"))
	},
	"cancelled rows": func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		rows, err := e.pool.QueryContext(ctx, "select i, pg_sleep(0.01) from generate_series(1, 1000) i")
		e.err("query", err)
		e.log("next %v", rows.Next())
		cancel()
		for rows.Next() {
		}
		e.log("err %v", rows.Err() != nil)
		_ = rows.Close()
		e.query(e.pool.QueryContext(e.ctx, "select 1"))
	},
	"connection lost": func(e *env) {
		e.exec("select pg_terminate_backend(pg_backend_pid())")
		e.query(e.pool.QueryContext(e.ctx, "select 1"))
		tx := e.begin(nil)
		_, err := tx.Exec("select pg_terminate_backend(pg_backend_pid())")
		e.err("terminate", err)
		_, err = tx.Exec("select 1")
		e.err("after", err)
		e.log("commit failed: %v", tx.Commit() != nil)
		e.query(e.pool.QueryContext(e.ctx, "select 1"))
	},
	"connection lost while idle": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			var pid int
			e.err("pid", c.QueryRowContext(ctx, "select pg_backend_pid()").Scan(&pid))
			var ok bool
			e.err("terminate", e.pool.QueryRowContext(ctx, "select pg_terminate_backend($1, 5000)", pid).Scan(&ok))
			_, err := c.ExecContext(ctx, "insert into diff.t (v) values (1)")
			e.log("failed: %v", err != nil)
			return nil
		})
	},
	"prepared statements": func(e *env) {
		stmt, err := e.pool.PrepareContext(e.ctx, "insert into diff.t (v) values ($1) returning v")
		e.err("prepare", err)
		for _, v := range []any{1, 1, "x", 2} {
			e.query(stmt.QueryContext(e.ctx, v))
		}
		tx := e.begin(nil)
		res, err := tx.StmtContext(e.ctx, stmt).ExecContext(e.ctx, 3)
		e.result(res, err)
		e.err("rollback", tx.Rollback())
		res, err = stmt.ExecContext(e.ctx, 4)
		e.result(res, err)
		e.err("close", stmt.Close())
		_, err = e.pool.PrepareContext(e.ctx, "select * from diff.missing")
		e.err("missing", err)
		_, err = e.pool.PrepareContext(e.ctx, "select 1; select 2")
		e.err("two", err)
	},
	"plans that went stale": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			stmt, err := c.PrepareContext(ctx, "select * from diff.t where v > $1")
			e.err("prepare", err)
			e.query(stmt.QueryContext(ctx, 0))
			rows, err := c.QueryContext(ctx, "select * from diff.t where v >= $1", 0)
			e.query(rows, err)
			e.exec("alter table diff.t add column more int")
			e.query(stmt.QueryContext(ctx, 0))
			for range 2 {
				rows, err = c.QueryContext(ctx, "select * from diff.t where v >= $1", 0)
				e.query(rows, err)
			}
			return stmt.Close()
		})
	},
	"notices": func(e *env) {
		e.exec("do $$begin raise notice 'a notice'; raise warning 'a warning'; end$$", "drop table if exists diff.none")
	},
	"listen": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, "listen diff")
			e.err("listen", err)
			e.exec("notify diff, 'from elsewhere'")
			_, err = c.ExecContext(ctx, "notify diff, 'from itself'")
			e.err("notify", err)
			e.exec("notify diff, 'from elsewhere again'")
			return c.Raw(func(dc any) error {
				for range 3 {
					ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
					n, err := rawConn(dc).WaitForNotification(ctx)
					cancel()
					e.err("wait", err)
					if n != nil {
						e.log("%s %s", n.Channel, n.Payload)
					}
				}
				return nil
			})
		})
	},
	"copy": func(e *env) {
		e.raw("copy", func(ctx context.Context, c *pgx.Conn) error {
			n, err := c.CopyFrom(ctx, pgx.Identifier{"diff", "t"}, []string{"v", "s"}, pgx.CopyFromRows([][]any{{1, "a"}, {2, nil}}))
			e.log("copied %d", n)
			e.err("copy", err)
			_, err = c.CopyFrom(ctx, pgx.Identifier{"diff", "t"}, []string{"v"}, pgx.CopyFromRows([][]any{{1}}))
			e.err("duplicate", err)
			_, err = c.CopyFrom(ctx, pgx.Identifier{"diff", "missing"}, []string{"v"}, pgx.CopyFromRows([][]any{{1}}))
			e.err("missing", err)
			_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("7\tx\n8\ty\n"), "copy diff.t (v, s) from stdin")
			e.err("text", err)
			var out bytes.Buffer
			tag, err := c.PgConn().CopyTo(ctx, &out, "copy (select v, s from diff.t order by v) to stdout")
			e.log("%s %q", tag, out.String())
			return err
		})
		tx := e.begin(nil)
		_, err := tx.Exec("copy diff.t to stdout")
		e.err("to stdout", err)
		e.err("rollback", tx.Rollback())
	},
	"batches": func(e *env) {
		e.raw("batch", func(ctx context.Context, c *pgx.Conn) error {
			b := &pgx.Batch{}
			b.Queue("insert into diff.t (v) values ($1)", 1)
			b.Queue("select v from diff.t")
			r := c.SendBatch(ctx, b)
			tag, err := r.Exec()
			e.log("%s", tag)
			e.err("exec", err)
			var v int
			e.err("row", r.QueryRow().Scan(&v))
			e.err("close", r.Close())
			b = &pgx.Batch{}
			b.BeginTx(pgx.TxOptions{})
			b.Queue("insert into diff.t (v) values (2)")
			r = c.SendBatch(ctx, b)
			e.err("close", r.Close())
			e.err("commit", r.Tx().Commit(ctx))
			b = &pgx.Batch{}
			b.Queue("insert into diff.t (v) values (3)")
			b.Queue("insert into diff.t (v) values (1)")
			return c.SendBatch(ctx, b).Close()
		})
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t order by v"))
	},
	"another connection with the same configuration": func(e *env) {
		e.raw("raw", func(ctx context.Context, c *pgx.Conn) error {
			other, err := pgx.ConnectConfig(ctx, c.Config())
			if err != nil {
				return err
			}
			_, err = other.Exec(ctx, "insert into diff.t (v) values ($1)", 1)
			e.err("exec", err)
			var v int
			e.err("row", c.QueryRow(ctx, "select v from diff.t where v = $1", 1).Scan(&v))
			return other.Close(ctx)
		})
	},
	"session state": func(e *env) {
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			for _, text := range []string{
				"set search_path = diff", "create temp table mine (a int)", "insert into mine values (1)", "insert into t (v) values (5)",
				"prepare p as select * from t", "execute p", "deallocate p", "declare c cursor with hold for select v from t", "fetch all from c",
				"close c", "select pg_advisory_lock(5)", "select pg_advisory_unlock(5)", "listen x", "unlisten *", "discard all",
			} {
				rows, err := c.QueryContext(ctx, text)
				e.log("%s", text)
				e.query(rows, err)
			}
			_, err := c.ExecContext(ctx, "set standard_conforming_strings = off")
			e.err("strings", err)
			_, err = c.ExecContext(ctx, "insert into diff.t (v, s) values ($1, 'a\\'';--')", 6)
			e.err("insert", err)
			_, err = c.ExecContext(ctx, "set default_transaction_read_only = on")
			e.err("read only", err)
			_, err = c.ExecContext(ctx, "insert into diff.t (v) values (7)")
			e.err("insert", err)
			_, err = c.ExecContext(ctx, "reset all")
			return err
		})
	},
	"procedures": func(e *env) {
		e.exec("create procedure diff.p() language plpgsql as $$begin insert into diff.t (v) values (1); commit; insert into diff.t (v) values (2); end$$",
			"call diff.p()", "call diff.p()",
			"create function diff.f(i int) returns setof int language plpgsql as $$begin return next i; perform 1/i; return next i; end$$")
		e.query(e.pool.QueryContext(e.ctx, "select * from diff.f($1)", 1))
		e.query(e.pool.QueryContext(e.ctx, "select * from diff.f($1)", 0))
		e.query(e.pool.QueryContext(e.ctx, "select v from diff.t order by v"))
	},
	"migrations": func(e *env) {
		db := e.db.WithContext(e.ctx)
		for range 2 {
			e.err("migrate", db.AutoMigrate(&thing{}))
		}
		m := db.Migrator()
		e.log("%v %v %v %s", m.HasTable(&thing{}), m.HasColumn(&thing{}, "Name"), m.HasIndex(&thing{}, "Name"), m.CurrentDatabase())
		types, err := m.ColumnTypes(&thing{})
		e.err("types", err)
		for _, c := range types {
			length, _ := c.Length()
			def, _ := c.DefaultValue()
			e.log("%s %s %d %s", c.Name(), c.DatabaseTypeName(), length, def)
		}
		e.err("rename", m.RenameColumn(&thing{}, "price", "cost"))
		e.err("drop", m.DropTable(&thing{}))
	},
	"gorm": func(e *env) {
		db := e.db.WithContext(e.ctx)
		e.err("migrate", db.AutoMigrate(&thing{}))
		at := time.Date(2022, 1, 2, 3, 4, 5, 0, time.UTC)
		all := []thing{{Name: "a", At: at, Price: 1.5, Data: []byte{1}}, {Name: "b", At: at}, {Name: "c", At: at}}
		tx := db.Create(&all)
		e.log("%d %v", tx.RowsAffected, all[2].ID)
		e.err("create", tx.Error)
		var got []thing
		e.err("find", db.Order("id").Find(&got, "name <> ?", "b").Error)
		for _, g := range got {
			e.log("%d %s %s %v %v", g.ID, g.Name, g.At.UTC(), g.Price, g.Data)
		}
		tx = db.Model(&thing{}).Where("name = ?", "a").Update("price", gorm.Expr("price + ?", 1))
		e.log("%d", tx.RowsAffected)
		tx = db.Delete(&thing{}, "name = ?", "a")
		e.log("%d", tx.RowsAffected)
		e.err("batches", db.FindInBatches(&got, 1, func(tx *gorm.DB, n int) error { e.log("batch %d", n); return nil }).Error)
		e.err("first", db.First(&thing{}, "name = ?", "a").Error)
		e.log("%s", db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&got, "name = ? and at > ?", "it's", at) }))
		var n int64
		e.err("count", db.Model(&thing{}).Count(&n).Error)
		e.log("%d %s", n, db.Name())
		e.err("drop", db.Migrator().DropTable(&thing{}))
	},
	"pool": func(e *env) {
		e.err("ping", e.pool.PingContext(e.ctx))
		e.conn("conn", func(ctx context.Context, c *sql.Conn) error {
			return c.Raw(func(dc any) error { e.log("%T", dc); return nil })
		})
	},
}

func rawConn(dc any) *pgx.Conn { return dc.(interface{ Conn() *pgx.Conn }).Conn() }
