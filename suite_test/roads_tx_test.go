package suite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

func badlyHinted(db *gorm.DB) *gorm.DB { return db.Scopes(scopes.ReadYourWrites(badToken)) }

const plusOneSQL = "update items set v = v + 1 where id = ?"

var errUndo = errors.New("to be rolled back")

// rawWriteRoads are writes in raw SQL.
var rawWriteRoads = map[string]way{
	"`Exec`":                       changed(func(r *run) error { return r.db.Exec(plusOneSQL, r.id).Error }),
	"`Exec(\"select writing()\")`": changed(func(r *run) error { return r.db.Exec("select bump(?)", r.id).Error }),
	"`Exec(\"select …\")` of a pure read": changed(func(r *run) error {
		return r.db.Exec("select v from items where id = ?", r.id).Error
	}),
	"`Exec(\"with … update …\")`": changed(func(r *run) error {
		return r.db.Exec("with w as (update items set v = 2 where id = ? returning 1) select * from w", r.id).Error
	}),
	"`Exec(\"do $$ … $$\")`": changed(func(r *run) error {
		return r.db.Exec("do $$ begin perform bump(" + strconv.FormatInt(r.id, 10) + "); end $$").Error
	}),
	"`Raw(\"… returning\").Scan`": changed(func(r *run) error {
		var v int64
		return r.db.Raw(plusOneSQL+" returning v", r.id).Scan(&v).Error
	}),
	"`Raw(\"… returning\").Find`": changed(func(r *run) error {
		return r.db.Raw(plusOneSQL+" returning *", r.id).Find(&[]Item{}).Error
	}),
	"`Raw(\"… returning\").First`": changed(func(r *run) error {
		return r.db.Raw(plusOneSQL+" returning *", r.id).First(&Item{}).Error
	}),
	"`Raw(\"… returning\").Row`": changed(func(r *run) error {
		var v int64
		return r.db.Raw(plusOneSQL+" returning v", r.id).Row().Scan(&v)
	}),
	"`Raw(\"… returning\").Rows`": changed(func(r *run) error {
		rows, err := r.db.Raw(plusOneSQL+" returning v", r.id).Rows()
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return errors.Join(rows.Err(), rows.Close())
	}),
	"`Raw(\"with … update …\").Scan`": changed(func(r *run) error {
		var v int64
		return r.db.Raw("with w as ("+plusOneSQL+" returning v) select v from w", r.id).Scan(&v).Error
	}),
	"`Raw(\"select writing()\").Scan`": changed(func(r *run) error {
		var v int64
		return r.db.Raw("select bump(?)", r.id).Scan(&v).Error
	}),
	"`Select(\"writing()\").Find`": changed(func(r *run) error {
		var vs []int64
		return r.db.Table("(select 1) one").Select("bump(?)", r.id).Find(&vs).Error
	}),
	"`Raw(\"explain analyze update …\").Scan`": changed(func(r *run) error {
		var plan []string
		return r.db.Raw("explain analyze "+plusOneSQL, r.id).Scan(&plan).Error
	}),
	"`Raw(\"update …\")` without rows, through `Scan`": changed(func(r *run) error {
		var v int64
		return r.db.Raw(plusOneSQL, r.id).Scan(&v).Error
	}),
}

// txRoads are the ways to commit.
var txRoads = map[string]way{
	"`Transaction`": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, r.id).Error })
	}),
	"`Transaction` nested in another": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, r.id).Error })
		})
	}),
	"`Transaction` with `Raw(\"… returning\")` alone": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			var v int64
			return tx.Raw(plusOneSQL+" returning v", r.id).Row().Scan(&v)
		})
	}),
	"`Transaction` around `gorm.G[T]`": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			_, err := gorm.G[Item](tx).Where("id = ?", r.id).Update(r.ctx, "v", 2)
			return err
		})
	}),
	"`Begin`, `Commit`": manually((*gorm.DB).Begin),
	"`Clauses(dbresolver.Write).Begin`": manually(func(db *gorm.DB, _ ...*sql.TxOptions) *gorm.DB {
		return db.Clauses(dbresolver.Write).Begin()
	}),
	"`SavePoint`, `RollbackTo`, with a write before": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			err := tx.Exec(plusOneSQL, r.id).Error
			return errors.Join(err, tx.SavePoint("a").Error, tx.Exec(plusOneSQL, r.id).Error, tx.RollbackTo("a").Error)
		})
	}),
	"a nested `Transaction` that is rolled back, after a write outside of it": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec(plusOneSQL, r.id).Error; err != nil {
				return err
			}
			return undone(tx.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Exec(plusOneSQL, r.id).Error, errUndo)
			}))
		})
	}),
	"`Transaction` that is rolled back": changed(func(r *run) error {
		return undone(r.db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Exec(plusOneSQL, r.id).Error, errUndo)
		}))
	}),
	"`Begin`, `Rollback`": changed(func(r *run) error {
		tx := r.db.Begin()
		return errors.Join(tx.Error, tx.Exec(plusOneSQL, r.id).Error, tx.Rollback().Error)
	}),
	"a write that fails": changed(func(r *run) error {
		return state("23505", r.db.Create(&Item{ID: r.id}).Error)
	}),
	"a write without a transaction that fails": changed(func(r *run) error {
		return state("23505", r.db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&Item{ID: r.id}).Error)
	}),
	"a commit that fails: a deferred constraint": changed(func(r *run) error {
		return state("23503", r.db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Exec(plusOneSQL, r.id).Error, tx.Create(&Pledge{ID: newID.Add(1), ItemID: -1}).Error)
		}))
	}),
	"an implicit commit that fails: a deferred constraint": changed(func(r *run) error {
		return state("23503", r.db.Create(&Pledge{ID: newID.Add(1), ItemID: -1}).Error)
	}),
	"`Transaction` that only reads": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error { return tx.First(&Item{}, r.id).Error })
	}),
	"`Transaction` in the callback of `FindInBatches`": changed(func(r *run) error {
		return r.db.Where("id = ?", r.id).FindInBatches(&[]Item{}, 2, func(tx *gorm.DB, _ int) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Exec(plusOneSQL, r.id).Error })
		}).Error
	}),
	"`rywplugin.SQLTx`": changed(func(r *run) error {
		return r.db.Transaction(func(tx *gorm.DB) error {
			sqlTx, ok := rywplugin.SQLTx(tx)
			if !ok {
				return errors.New("not in a transaction")
			}
			_, err := sqlTx.ExecContext(r.ctx, "update items set v = v + 1 where id = $1", r.id)
			return err
		})
	}),
	"`db.DB()`, with the session's context": changed(func(r *run) error {
		pool, err := r.db.DB()
		if err != nil {
			return err
		}
		_, err = pool.ExecContext(r.ctx, "update items set v = v + 1 where id = $1", r.id)
		return err
	}),
}

// manually writes in a transaction that is begun in some way and committed.
func manually(begin func(*gorm.DB, ...*sql.TxOptions) *gorm.DB) way {
	return changed(func(r *run) error {
		tx := begin(r.db)
		if tx.Error != nil {
			return tx.Error
		}
		defer tx.Rollback()
		return errors.Join(tx.Exec(plusOneSQL, r.id).Error, tx.Commit().Error)
	})
}

// undone takes the error of a rollback that was asked for.
func undone(err error) error {
	if errors.Is(err, errUndo) {
		return nil
	}
	return fmt.Errorf("want %w, have %w", errUndo, err)
}

// state takes an error that has to be of the SQLSTATE.
func state(want string, err error) error {
	if sqlState(err) == want {
		return nil
	}
	return fmt.Errorf("want SQLSTATE %s, have %w", want, err)
}
