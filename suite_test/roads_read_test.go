package suite_test

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// answersOf collects who answered for the rows of a result.
func answersOf(err error, trees ...Tree) ([]seenV, error) {
	var answers []seenV
	for _, t := range trees {
		answers = append(answers, seenV{t.V, t.Replica})
		for _, w := range t.Twigs {
			more, _ := answersOfTwigs(nil, w)
			answers = append(answers, more...)
		}
	}
	return answers, err
}

func answersOfTwigs(err error, twigs ...Twig) ([]seenV, error) {
	var answers []seenV
	for _, w := range twigs {
		answers = append(answers, seenV{w.V, w.Replica})
		for _, l := range w.Leaves {
			answers = append(answers, seenV{l.V, l.Replica})
		}
		if w.Tree != nil {
			answers = append(answers, seenV{w.Tree.V, w.Tree.Replica})
		}
	}
	return answers, err
}

func decoded(err error, codes ...int64) ([]seenV, error) {
	var answers []seenV
	for _, c := range codes {
		answers = append(answers, decode(c))
	}
	return answers, err
}

// readRoads are the calls that build a query and read its result.
var readRoads = map[string]way{
	"`First`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.First(&t, r.id).Error, t)
	}},
	"`Take`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Take(&t, r.id).Error, t)
	}},
	"`Last`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Last(&t, r.id).Error, t)
	}},
	"`Find`": {read: func(r *run) ([]seenV, error) {
		var ts []Tree
		return answersOf(r.db.Find(&ts, "id = ?", r.id).Error, ts...)
	}},
	"`Take` into a map": {read: func(r *run) ([]seenV, error) {
		m := map[string]any{}
		err := r.db.Model(&Tree{}).Where("id = ?", r.id).Take(&m).Error
		code, _ := m["code"].(int64)
		return decoded(err, code)
	}},
	"`Scan`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Model(&Tree{}).Where("id = ?", r.id).Select("code").Scan(&code).Error, code)
	}},
	"`Pluck`": {read: func(r *run) ([]seenV, error) {
		var codes []int64
		return decoded(r.db.Model(&Tree{}).Where("id = ?", r.id).Pluck("code", &codes).Error, codes...)
	}},
	"`Count`": {read: func(r *run) ([]seenV, error) {
		var n int64
		return decoded(r.db.Model(&Code{}).Where("item_id = ?", r.id).Count(&n).Error, n)
	}},
	"`Row`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Model(&Tree{}).Where("id = ?", r.id).Select("code").Row().Scan(&code), code)
	}},
	"`Rows`, `ScanRows`": {read: func(r *run) (answers []seenV, err error) {
		rows, err := r.db.Model(&Tree{}).Where("id = ?", r.id).Rows()
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var t Tree
			if err := r.db.ScanRows(rows, &t); err != nil {
				return nil, err
			}
			answers = append(answers, seenV{t.V, t.Replica})
		}
		return answers, rows.Err()
	}},
	"`FindInBatches`, with `Preload`": {read: func(r *run) (answers []seenV, err error) {
		var ts []Tree
		err = r.db.Where("id = ?", r.id).Preload("Twigs").FindInBatches(&ts, 2, func(tx *gorm.DB, _ int) error {
			answers, _ = answersOf(nil, ts...)
			return nil
		}).Error
		return answers, err
	}},
	"a read in the callback of `FindInBatches`, which drops the hint": {read: func(r *run) ([]seenV, error) {
		var ts []Tree
		var t Tree
		err := r.db.Where("id = ?", r.id).FindInBatches(&ts, 2, func(tx *gorm.DB, _ int) error {
			return tx.Preload("Twigs").First(&t, r.id).Error
		}).Error
		return answersOf(err, t)
	}},
	"hooks of a read: `AfterFind` reads": {read: func(r *run) ([]seenV, error) {
		f := Found{}
		err := r.db.First(&f, r.id).Error
		return f.answers, err
	}},
	"`FindInBatches` with batches of one row": {read: func(r *run) (answers []seenV, err error) {
		var ts []Tree
		err = r.db.Where("id = ?", r.id).FindInBatches(&ts, 1, func(tx *gorm.DB, _ int) error {
			answers, _ = answersOf(nil, ts...)
			return nil
		}).Error
		return answers, err
	}},
	"`Preload`, nested": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Preload("Twigs.Leaves").Preload("Twigs.Tree").First(&t, r.id).Error, t)
	}},
	"`Joins` of an association": {read: func(r *run) ([]seenV, error) {
		var w Twig
		return answersOfTwigs(r.db.Joins("Tree").First(&w, `"seen_twigs"."id" = ?`, r.id).Error, w)
	}},
	"`Joins` of SQL": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Model(&Twig{}).Joins("join seen_items i on i.id = seen_twigs.item_id").
			Where("i.id = ?", r.id).Select("code").Scan(&code).Error, code)
	}},
	"`Association(…).Find`": {read: func(r *run) ([]seenV, error) {
		var ws []Twig
		return answersOfTwigs(r.db.Model(&Tree{ID: r.id}).Association("Twigs").Find(&ws), ws...)
	}},
	"`Association(…).Count`": {read: func(r *run) ([]seenV, error) {
		as := r.db.Model(&Tree{ID: r.id}).Association("Codes")
		return decoded(as.Error, as.Count())
	}},
	"a subquery in `Where`": {read: func(r *run) ([]seenV, error) {
		var ts []Tree
		err := r.db.Where("id in (?)", r.app.Model(&Tree{}).Select("id").Where("id = ?", r.id)).Find(&ts).Error
		return answersOf(err, ts...)
	}},
	"`Table` with a subquery": {read: func(r *run) ([]seenV, error) {
		var code int64
		err := r.db.Table("(?) as t", r.app.Model(&Tree{}).Where("id = ?", r.id)).Select("code").Scan(&code).Error
		return decoded(err, code)
	}},
	"`Group`, `Having`, `Order`, `Distinct`": {read: func(r *run) ([]seenV, error) {
		var code int64
		err := r.db.Model(&Tree{}).Distinct("max(code)").Where("id = ?", r.id).Group("id").
			Having("count(*) = ?", 1).Order("max(code) desc").Scan(&code).Error
		return decoded(err, code)
	}},
	"`Session{PrepareStmt}`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Session(&gorm.Session{PrepareStmt: true}).First(&t, r.id).Error, t)
	}},
	"`Session{NewDB}`, which drops the hint": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Session(&gorm.Session{NewDB: true}).First(&t, r.id).Error, t)
	}},
	"`gorm.G[T](db, hint.Clause())`: `First`, `Find`, `Count`, `Preload`": {read: genericRead},
	"`gorm.G[T]`: `Row`, `Rows`, `FindInBatches`, `Raw`":                  {read: genericRows},
	"clauses as gen takes them": {read: func(r *run) ([]seenV, error) {
		var t Tree
		db := r.app.WithContext(r.ctx).Session(&gorm.Session{})
		db.Statement.ConnPool = r.db.Statement.ConnPool
		for _, h := range r.hints {
			db = db.Clauses(h.(clause.Interface))
		}
		return answersOf(db.First(&t, r.id).Error, t)
	}},
}

func genericRead(r *run) ([]seenV, error) {
	q := gorm.G[Tree](r.db, r.hints...)
	first, err := q.Preload("Twigs", nil).Where("id = ?", r.id).First(r.ctx)
	if err != nil {
		return nil, err
	}
	found, err := q.Where("id = ?", r.id).Find(r.ctx)
	if err != nil {
		return nil, err
	}
	answers, _ := answersOf(nil, append(found, first)...)
	n, err := gorm.G[Code](r.db, r.hints...).Where("item_id = ?", r.id).Count(r.ctx, "*")
	return append(answers, decode(n)), err
}

func genericRows(r *run) ([]seenV, error) {
	q := gorm.G[Tree](r.db, r.hints...)
	var one, two int64
	if err := q.Select("code").Where("id = ?", r.id).Row(r.ctx).Scan(&one); err != nil {
		return nil, err
	}
	rows, err := q.Select("code").Where("id = ?", r.id).Rows(r.ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&two); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	answers := []seenV{decode(one), decode(two)}
	err = q.Where("id = ?", r.id).FindInBatches(r.ctx, 2, func(ts []Tree, _ int) error {
		more, _ := answersOf(nil, ts...)
		answers = append(answers, more...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	raw, err := q.Raw("select * from seen_items where id = ?", r.id).Find(r.ctx)
	more, _ := answersOf(nil, raw...)
	return append(answers, more...), err
}

// Found reads its tree when it is found.
type Found struct {
	ID      int64
	answers []seenV
}

// TableName implements schema.Tabler.
func (Found) TableName() string { return "items" }

// AfterFind implements GORM's hook.
func (f *Found) AfterFind(tx *gorm.DB) error {
	var t Tree
	err := tx.Preload("Twigs").First(&t, f.ID).Error
	f.answers, err = answersOf(err, t)
	return err
}
