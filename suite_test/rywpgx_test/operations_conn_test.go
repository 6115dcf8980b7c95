package rywpgx_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

var connections = map[string]func(*env){
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
