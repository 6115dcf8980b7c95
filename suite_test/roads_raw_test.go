package suite_test

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"
)

// rawRead is raw SQL that returns an item's code.
func rawRead(sql string) way {
	return way{read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Raw(sql, r.id).Scan(&code).Error, code)
	}}
}

// rawRoads are reads in raw SQL.
var rawRoads = map[string]way{
	"`Raw(\"select …\").Scan`": rawRead("select code from seen_items where id = ?"),
	"`Raw(\"select …\").Find`": {read: func(r *run) ([]seenV, error) {
		var ts []Tree
		return answersOf(r.db.Raw("select * from seen_items where id = ?", r.id).Find(&ts).Error, ts...)
	}},
	"`Raw(\"select …\").Row`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Raw("select code from seen_items where id = ?", r.id).Row().Scan(&code), code)
	}},
	"`Raw(\"select …\").Rows`": {read: func(r *run) ([]seenV, error) {
		rows, err := r.db.Raw("select code from seen_items where id = ?", r.id).Rows()
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var codes []int64
		for rows.Next() {
			var code int64
			if err := rows.Scan(&code); err != nil {
				return nil, err
			}
			codes = append(codes, code)
		}
		return decoded(rows.Err(), codes...)
	}},
	"`Raw(\"with … select …\")`":            rawRead("with x as (select code from seen_items where id = ?) select code from x"),
	"`Raw(\"/* comment */ select …\")`":     rawRead("/* a comment */ select code from seen_items where id = ?"),
	"`Raw(\"(select …) union …\")`":         rawRead("(select code from seen_items where id = ?) union all select 1 where false"),
	"`Raw(\"select … for update\")`":        locking("for update"),
	"`Raw(\"select … for update;\")`":       locking("for update;"),
	"`Raw(\"… for update skip locked\")`":   locking("for update skip locked"),
	"`Raw(\"… for no key update nowait\")`": locking("for no key update nowait"),
	"`Raw(\"… for share\")`":                locking("for share"),
	"a lock in a subquery of `Raw`": rawRead(
		"select code from seen_items where id = (select id from items where id = ? for update)"),
	"`Raw(\"select … pg_advisory_lock(…)\")`": rawRead(
		"select code from seen_items where id = ? and pg_advisory_xact_lock(1) is not null"),
	"`Raw(\"select … set_config(…)\")`": rawRead(
		"select code from seen_items where id = ? and set_config('application_name', 'road', true) is not null"),
	"`Raw(\"select … nextval(…)\")`": rawRead("select code from seen_items where id = ? and nextval('road_seq') is not null"),
	"`Raw(\"select … unknown(…)\")`": rawRead("select code from seen_items where id = harmless(?)"),
}

// locking reads from the base table, which can be locked.
func locking(lock string) way {
	return rawRead("select (2 - pg_is_in_recovery()::int) * 1000 + v from items where id = ? " + lock)
}

// primaryRoads are reads that the primary has to answer, whatever is asked for.
var primaryRoads = map[string]way{
	"`Clauses(clause.Locking{…})`": {read: func(r *run) ([]seenV, error) {
		it, tx := Item{}, r.db.Clauses(clause.Locking{Strength: "UPDATE"}).Select("items.*, "+who)
		err := tx.First(&it, r.id).Error
		return []seenV{{it.V, it.Replica}}, err
	}},
	"`clause.Locking` in a subquery": {read: func(r *run) ([]seenV, error) {
		var ts []Tree
		sub := r.app.Model(&Item{}).Select("id").Where("id = ?", r.id).Clauses(clause.Locking{Strength: "UPDATE"})
		return answersOf(r.db.Where("id = (?)", sub).Find(&ts).Error, ts...)
	}},
	"an unknown function in `Select`, `Where`, `Order`": {read: func(r *run) ([]seenV, error) {
		var t, u, v Tree
		err := r.db.Select("*, harmless(1)").First(&t, r.id).Error
		if err == nil {
			err = r.db.Where("harmless(id) = ?", r.id).First(&u).Error
		}
		if err == nil {
			err = r.db.Order("harmless(id)").Find(&v, r.id).Error
		}
		return answersOf(err, t, u, v)
	}},
	"`Clauses(dbresolver.Write)`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Clauses(dbresolver.Write).First(&t, r.id).Error, t)
	}},
	"`Clauses(dbresolver.Write)` on `Raw`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Clauses(dbresolver.Write).Raw("select code from seen_items where id = ?", r.id).Scan(&code).Error, code)
	}},
	"hooks during a write: `AfterCreate` reads": {read: func(r *run) ([]seenV, error) {
		m := Marked{ID: newID.Add(1), ItemID: r.id}
		err := r.db.Create(&m).Error
		return m.answers, err
	}},
}

// Marked reads its item in a hook of its own creation.
type Marked struct {
	ID      int64 `gorm:"primaryKey"`
	ItemID  int64
	answers []seenV
}

// TableName implements schema.Tabler.
func (Marked) TableName() string { return "marked" }

// AfterCreate implements GORM's hook.
func (m *Marked) AfterCreate(tx *gorm.DB) error {
	var t Tree
	err := tx.Preload("Twigs").First(&t, m.ItemID).Error
	m.answers, err = answersOf(err, t)
	return err
}
