package suite_test

import (
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"
)

// Conditions that tell that a write has been made. Before it there are an item,
// a twig, a leaf, a note and a tag of the number, each at version 1.
const (
	hasPart     = "exists (select from parts where item_id = ?)"
	noItem      = "not exists (select from items where id = ?)"
	noTwig      = "not exists (select from twigs where item_id = ?)"
	noteDeleted = "exists (select from notes where id = ? and deleted_at is not null)"
	noNote      = "not exists (select from notes where id = ?)"
	hasTag      = "exists (select from item_tags where item_id = ?)"
	hasTable    = "to_regclass('road_' || ?::bigint) is not null"
)

func made(done string, write func(r *run) error) way { return way{done: done, write: write} }

func changed(write func(r *run) error) way { return way{write: write} }

func (r *run) item() *gorm.DB { return r.db.Model(&Item{}).Where("id = ?", r.id) }

func (r *run) part() Part { return Part{ID: newID.Add(1), ItemID: r.id, Name: "a"} }

func (r *run) parts(n int) (ps []Part) {
	for range n {
		ps = append(ps, r.part())
	}
	return ps
}

var plusOne = gorm.Expr("v + 1")

// writeRoads are the calls that build a write.
var writeRoads = map[string]way{
	"`Create`":            made(hasPart, func(r *run) error { p := r.part(); return r.db.Create(&p).Error }),
	"`Create` of a slice": made(hasPart, func(r *run) error { return r.db.Create(r.parts(3)).Error }),
	"`Create` of a map": made(hasPart, func(r *run) error {
		return r.db.Model(&Part{}).Create(map[string]any{"id": newID.Add(1), "item_id": r.id}).Error
	}),
	"`Create` with `CreateBatchSize`": made(hasPart, func(r *run) error {
		return r.db.Session(&gorm.Session{CreateBatchSize: 2}).Create(r.parts(3)).Error
	}),
	"`CreateInBatches`": made(hasPart, func(r *run) error { return r.db.CreateInBatches(r.parts(5), 2).Error }),
	"`Create` with associations": made(noTwigLess, func(r *run) error {
		return r.db.Create(&Item{ID: newID.Add(1), Parts: []Part{{ID: newID.Add(1), Name: fmt.Sprint(r.id)}}}).Error
	}),
	"`Save` of a row that exists": changed(func(r *run) error { return r.db.Save(&Item{ID: r.id, V: 2}).Error }),
	"`Save` of a new row":         made(hasPart, func(r *run) error { p := r.part(); return r.db.Save(&p).Error }),
	"`Save` of a slice":           changed(func(r *run) error { return r.db.Save([]Item{{ID: r.id, V: 2}}).Error }),
	"upsert: `Clauses(clause.OnConflict{…}).Create`": changed(func(r *run) error {
		return r.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Item{ID: r.id, V: 2}).Error
	}),
	"`Update`":        changed(func(r *run) error { return r.item().Update("v", plusOne).Error }),
	"`Updates`":       changed(func(r *run) error { return r.item().Updates(Item{V: 2}).Error }),
	"`UpdateColumn`":  changed(func(r *run) error { return r.item().UpdateColumn("v", plusOne).Error }),
	"`UpdateColumns`": changed(func(r *run) error { return r.item().UpdateColumns(map[string]any{"v": 2}).Error }),
	"`Update` with `clause.Returning`": changed(func(r *run) error {
		var it Item
		return r.db.Model(&it).Clauses(clause.Returning{}).Where("id = ?", r.id).Update("v", plusOne).Error
	}),
	"`Delete`":            made(noItem, func(r *run) error { return r.db.Delete(&Item{}, r.id).Error }),
	"`Delete`, soft":      made(noteDeleted, func(r *run) error { return r.db.Delete(&Note{ID: r.id}).Error }),
	"`Unscoped().Delete`": made(noNote, func(r *run) error { return r.db.Unscoped().Delete(&Note{ID: r.id}).Error }),
	"`Association(…).Append`": made(hasPart, func(r *run) error {
		p := Part{ID: newID.Add(1)}
		return r.db.Model(&Item{ID: r.id}).Association("Parts").Append(&p)
	}),
	"`Association(…).Append`, many to many": made(hasTag, func(r *run) error {
		return r.db.Model(&Tagged{ID: r.id}).Association("Tags").Append(&Tag{ID: r.id})
	}),
	"`Association(…).Replace`": made(noTwig, func(r *run) error {
		return r.db.Model(&Trunk{ID: r.id}).Association("Twigs").Replace([]Branch{{ID: newID.Add(1)}}[:0])
	}),
	"`Association(…).Delete`": made(noTwig, func(r *run) error {
		return r.db.Model(&Trunk{ID: r.id}).Association("Twigs").Delete(&Branch{ID: r.id})
	}),
	"`Association(…).Clear`": made(noTwig, func(r *run) error {
		return r.db.Model(&Trunk{ID: r.id}).Association("Twigs").Clear()
	}),
	"`FirstOrCreate`, which creates": made(hasPart, func(r *run) error {
		return r.db.Where("item_id = ?", r.id).Attrs(r.part()).FirstOrCreate(&Part{}).Error
	}),
	"`FirstOrCreate` with `Assign`, which updates": changed(func(r *run) error {
		return r.db.Where("id = ?", r.id).Assign(Item{V: 2}).FirstOrCreate(&Item{}).Error
	}),
	"`gorm.G[T]`: `Create`": made(hasPart, func(r *run) error {
		p := r.part()
		return gorm.G[Part](r.db, r.hints...).Create(r.ctx, &p)
	}),
	"`gorm.G[T]`: `CreateInBatches`": made(hasPart, func(r *run) error {
		ps := r.parts(3)
		return gorm.G[Part](r.db, r.hints...).CreateInBatches(r.ctx, &ps, 2)
	}),
	"`gorm.G[T]`: `Update`": changed(func(r *run) error {
		_, err := gorm.G[Item](r.db, r.hints...).Where("id = ?", r.id).Update(r.ctx, "v", 2)
		return err
	}),
	"`gorm.G[T]`: `Delete`": made(noItem, func(r *run) error {
		_, err := gorm.G[Item](r.db, r.hints...).Where("id = ?", r.id).Delete(r.ctx)
		return err
	}),
	"`gorm.G[T]`: `Exec`": changed(func(r *run) error {
		return gorm.G[Item](r.db, r.hints...).Exec(r.ctx, "update items set v = 2 where id = ?", r.id)
	}),
	"`gorm.G[T]`: `Raw(\"… returning\").Find`": changed(func(r *run) error {
		_, err := gorm.G[Item](r.db, r.hints...).Raw("update items set v = 2 where id = ? returning *", r.id).Find(r.ctx)
		return err
	}),
	"`Migrator().CreateTable`": made(hasTable, func(r *run) error {
		return r.db.Table(fmt.Sprintf("road_%d", r.id)).Migrator().CreateTable(&Tag{})
	}),
	"`AutoMigrate`": made(hasTable, func(r *run) error {
		return r.db.Table(fmt.Sprintf("road_%d", r.id)).AutoMigrate(&Tag{})
	}),
	"`Session{SkipDefaultTransaction}`": changed(func(r *run) error {
		return r.db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Session{PrepareStmt}`, write": changed(func(r *run) error {
		return r.db.Session(&gorm.Session{PrepareStmt: true}).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Session{NewDB}`, write": changed(func(r *run) error {
		return r.db.Session(&gorm.Session{NewDB: true}).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Clauses(dbresolver.Write)`, write": changed(func(r *run) error {
		return r.db.Clauses(dbresolver.Write).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Clauses(dbresolver.Read)`, write": changed(func(r *run) error {
		return r.db.Clauses(dbresolver.Read).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"hooks that write: `BeforeUpdate`": changed(func(r *run) error {
		return r.db.Model(&Hooked{ID: r.id}).Update("name", "b").Error
	}),
	"a write that changes no row": made("not exists (select from items where id = -?::bigint)", func(r *run) error {
		primarySQL(r.ctx, "select grow($1)", r.id) // or the replicas have all there is
		return r.db.Model(&Item{}).Where("id = ?", -r.id).Update("v", 2).Error
	}),
	"`DryRun`, write": changed(func(r *run) error {
		return r.db.Session(&gorm.Session{DryRun: true}).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Connection`, write": changed(func(r *run) error {
		return r.db.Connection(func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{}).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
		})
	}),
	"`Scopes(scopes.NoCapture())`": changed(func(r *run) error {
		return r.db.Scopes(scopes.NoCapture()).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"`Scopes(scopes.NoCapture())` on `Exec`": changed(func(r *run) error {
		return r.db.Scopes(scopes.NoCapture()).Exec(plusOneSQL, r.id).Error
	}),
	"`Scopes(scopes.NoCapture())` on `Raw(\"… returning\").Scan`": changed(func(r *run) error {
		var v int64
		return r.db.Scopes(scopes.NoCapture()).Raw(plusOneSQL+" returning v", r.id).Scan(&v).Error
	}),
	"a bad token: `Update`": changed(func(r *run) error {
		return badlyHinted(r.db).Model(&Item{}).Where("id = ?", r.id).Update("v", 2).Error
	}),
	"a bad token: `Exec`": changed(func(r *run) error {
		return badlyHinted(r.db).Exec("update items set v = 2 where id = ?", r.id).Error
	}),
}

const noTwigLess = "exists (select from parts where name = (?::bigint)::text)"

// Trunk and Branch are items and twigs, as tables, with the delete rights that
// Unscoped associations would need.
type Trunk struct {
	ID    int64    `gorm:"primaryKey"`
	Twigs []Branch `gorm:"foreignKey:ItemID"`
}

// Branch belongs to a trunk.
type Branch struct {
	ID     int64 `gorm:"primaryKey"`
	ItemID *int64
}

// Hooked is a tag whose update raises its item's version.
type Hooked struct {
	ID   int64
	Name string
}

// TableName implements schema.Tabler.
func (Trunk) TableName() string { return "items" }

// TableName implements schema.Tabler.
func (Branch) TableName() string { return "twigs" }

// TableName implements schema.Tabler.
func (Hooked) TableName() string { return "tags" }

// BeforeUpdate implements GORM's hook.
func (h *Hooked) BeforeUpdate(tx *gorm.DB) error {
	return tx.Model(&Item{}).Where("id = ?", h.ID).Update("v", plusOne).Error
}
