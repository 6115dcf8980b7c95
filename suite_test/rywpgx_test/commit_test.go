package rywpgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// modes are all ways pgx sends statements.
var modes = map[string]settings{
	"cache_statement": {},
	"cache_describe":  {params: "default_query_exec_mode=cache_describe"},
	"describe_exec":   {params: "default_query_exec_mode=describe_exec"},
	"exec":            {params: "default_query_exec_mode=exec"},
	"simple_protocol": {params: "default_query_exec_mode=simple_protocol"},
	"PreferSimple":    {simple: true},
	"PrepareStmt":     {prepare: true},
	"implicit":        {implicit: true},
	"implicit+stmt":   {implicit: true, prepare: true},
	"implicit+simple": {implicit: true, simple: true},
}

// row is one of a table's.
type row struct {
	ID int64
	V  int
	T  string
}

// writes are ways to write one unit of work. Each returns the commit's error.
var writes = map[string]func(db *gorm.DB, table string, v int) error{
	"Create": func(db *gorm.DB, table string, v int) error {
		return db.Table(table).Create(map[string]any{"v": v}).Error
	},
	"Create returning": func(db *gorm.DB, table string, v int) error {
		r := row{V: v}
		return db.Table(table).Create(&r).Error
	},
	"Update returning": func(db *gorm.DB, table string, v int) error {
		var out []row
		return db.Table(table).Model(&out).Clauses(clause.Returning{}).Where("v < ?", v).Updates(map[string]any{"t": fmt.Sprint(v)}).Error
	},
	"Exec": func(db *gorm.DB, table string, v int) error {
		return db.Exec("insert into "+table+" (v) values (?)", v).Error
	},
	"Exec without arguments": func(db *gorm.DB, table string, v int) error {
		return db.Exec(fmt.Sprintf("insert into %s (v) values (%d)", table, v)).Error
	},
	"Raw returning": func(db *gorm.DB, table string, v int) error {
		var id int64
		return db.Raw("insert into "+table+" (v) values (?) returning id", v).Scan(&id).Error
	},
	"Row": func(db *gorm.DB, table string, v int) error {
		var id int64
		return db.Raw("insert into "+table+" (v) values (?) returning id", v).Row().Scan(&id)
	},
	"Rows closed late": func(db *gorm.DB, table string, v int) error {
		rows, err := db.Raw("insert into "+table+" (v) values (?), (?) returning id", v, -v).Rows()
		if err != nil {
			return err
		}
		rows.Next()
		return rows.Close()
	},
	"Transaction": func(db *gorm.DB, table string, v int) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return tx.Exec("insert into "+table+" (v) values (?)", v).Error
		})
	},
	"nested": func(db *gorm.DB, table string, v int) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error {
				return tx.Exec("insert into "+table+" (v) values (?)", v).Error
			})
		})
	},
	"savepoint rolled back": func(db *gorm.DB, table string, v int) error {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec("insert into "+table+" (v) values (?)", v).Error; err != nil {
				return err
			}
			_ = tx.Transaction(func(tx *gorm.DB) error { return tx.Exec("select 1/0").Error })
			return nil
		})
	},
	"Begin and Commit": func(db *gorm.DB, table string, v int) error {
		tx := db.Begin(&sql.TxOptions{Isolation: sql.LevelSerializable})
		if err := tx.Exec("insert into "+table+" (v) values (?)", v).Error; err != nil {
			return err
		}
		return tx.Commit().Error
	},
	"sql.DB": func(db *gorm.DB, table string, v int) error {
		p, _ := db.DB()
		_, err := p.ExecContext(db.Statement.Context, "insert into "+table+" (v) values ($1)", v)
		return err
	},
	"sql.Tx": func(db *gorm.DB, table string, v int) error {
		p, _ := db.DB()
		tx, err := p.BeginTx(db.Statement.Context, nil)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("insert into "+table+" (v) values ($1)", v); err != nil {
			return err
		}
		return tx.Commit()
	},
	"sql.Tx prepared": func(db *gorm.DB, table string, v int) error {
		p, _ := db.DB()
		tx, err := p.BeginTx(db.Statement.Context, nil)
		if err != nil {
			return err
		}
		stmt, err := tx.Prepare("insert into " + table + " (v) values ($1)")
		if err != nil {
			return err
		}
		if _, err := stmt.Exec(v); err != nil {
			return err
		}
		return tx.Commit()
	},
	"text on sql.Conn": func(db *gorm.DB, table string, v int) error {
		return onConn(db, func(ctx context.Context, c *sql.Conn) error {
			for _, text := range []string{
				"begin isolation level repeatable read", "set transaction isolation level serializable",
				fmt.Sprintf("insert into %s (v) values (%d)", table, v), "/* a comment */ Commit",
			} {
				if _, err := c.ExecContext(ctx, text); err != nil {
					return err
				}
			}
			return nil
		})
	},
	"several statements": func(db *gorm.DB, table string, v int) error {
		return onConn(db, func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, fmt.Sprintf("begin; insert into %s (v) values (%d); commit", table, v))
			return err
		})
	},
	"several statements, one implicit transaction": func(db *gorm.DB, table string, v int) error {
		return onConn(db, func(ctx context.Context, c *sql.Conn) error {
			_, err := c.ExecContext(ctx, fmt.Sprintf("insert into %[1]s (v) values (%[2]d); insert into %[1]s (v) values (-%[2]d)", table, v))
			return err
		})
	},
	"CopyFrom": func(db *gorm.DB, table string, v int) error {
		return onPgx(db, func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.CopyFrom(ctx, pgx.Identifier{table}, []string{"v"}, pgx.CopyFromRows([][]any{{v}}))
			return err
		})
	},
	"batch": func(db *gorm.DB, table string, v int) error {
		return onPgx(db, func(ctx context.Context, c *pgx.Conn) error {
			b := &pgx.Batch{}
			b.Queue("insert into "+table+" (v) values ($1)", v)
			b.Queue("select 1")
			return c.SendBatch(ctx, b).Close()
		})
	},
	"pgx": func(db *gorm.DB, table string, v int) error {
		return onPgx(db, func(ctx context.Context, c *pgx.Conn) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "insert into "+table+" (v) values ($1)", v)
				return err
			})
		})
	},
	"below pgx in a transaction": func(db *gorm.DB, table string, v int) error {
		return onPgx(db, func(ctx context.Context, c *pgx.Conn) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				return c.PgConn().Exec(ctx, fmt.Sprintf("insert into %s (v) values (%d)", table, v)).Close()
			})
		})
	},
}

func onConn(db *gorm.DB, do func(context.Context, *sql.Conn) error) error {
	ctx := db.Statement.Context
	p, err := db.DB()
	if err != nil {
		return err
	}
	c, err := p.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, c), c.Close())
}

// onPgx reaches the connection as pgx's documentation shows it.
func onPgx(db *gorm.DB, do func(context.Context, *pgx.Conn) error) error {
	return onConn(db, func(ctx context.Context, c *sql.Conn) error {
		return c.Raw(func(dc any) error { return do(ctx, dc.(*stdlib.Conn).Conn()) })
	})
}

func TestEveryWriteIsPlaced(t *testing.T) {
	for mode, s := range modes {
		t.Run(mode, func(t *testing.T) {
			h, tab := newHooks(), table(t)
			db := s.ours(t, h)
			v := 0
			for name, write := range writes {
				for range 2 { // the second finds its statement cached
					v++
					eventually(t, name, func() error {
						v++
						w := &who{}
						err := write(db.WithContext(observed(t.Context(), w)), tab, v)
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						e := only(t, h.take(), rywpgx.Committed)
						have, want := placed(t, e), position(t)
						if e.who != w || have != want {
							return fmt.Errorf("have %s, want %s", have, want)
						}
						return nil
					})
				}
			}
		})
	}
}

// eventually tries a few times: now and then a server writes WAL by itself.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = try(); err == nil {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}
