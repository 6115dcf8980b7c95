package rywpgx_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"gorm.io/gorm"
)

var transactions = map[string]func(*env){
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
}
