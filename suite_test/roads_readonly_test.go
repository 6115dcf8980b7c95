package suite_test

import (
	"context"
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

func readOnly(level sql.IsolationLevel) *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: true, Isolation: level}
}

// inReadOnly reads in a read-only transaction: several statements of its own
// kinds, all on one server.
func inReadOnly(opts *sql.TxOptions, begin func(r *run) *gorm.DB) way {
	return way{read: func(r *run) (answers []seenV, err error) {
		err = begin(r).Transaction(func(tx *gorm.DB) error {
			var t, u Tree
			if err := tx.Preload("Twigs").First(&t, r.id).Error; err != nil {
				return err
			}
			var code int64
			if err := tx.Raw("select code from seen_items where id = ?", r.id).Scan(&code).Error; err != nil {
				return err
			}
			u, err := gorm.G[Tree](tx).Where("id = ?", r.id).First(r.ctx)
			answers, _ = answersOf(nil, t, u)
			answers = append(answers, decode(code))
			return err
		}, opts)
		return answers, err
	}}
}

// byClause has the hint on the transaction as a clause, which alone reaches it.
func byClause(r *run) *gorm.DB {
	db := r.app.WithContext(r.ctx)
	for _, h := range r.hints {
		db = db.Clauses(h)
	}
	return db
}

// byContext has it in the context.
func byContext(r *run) *gorm.DB {
	ctx := r.ctx
	if len(r.hints) > 0 {
		ctx = scopes.WithStaleOK(ctx)
	}
	return r.app.WithContext(ctx)
}

func withPrepared(ctx context.Context, opts ...appOption) *app {
	return newApp(ctx, append(opts, gormConfig(func(c *gorm.Config) { c.PrepareStmt = true }))...)
}

// readOnlyRoads are transactions that cannot write.
var readOnlyRoads = map[string]way{
	"`Clauses(hint.Clause()).Transaction`, read only":                  unprepared(inReadOnly(readOnly(sql.LevelDefault), byClause)),
	"`Transaction`, read only, the hint in the context":                unprepared(inReadOnly(readOnly(sql.LevelDefault), byContext)),
	"`Clauses(hint.Clause()).Transaction`, read only, REPEATABLE READ": unprepared(inReadOnly(readOnly(sql.LevelRepeatableRead), byClause)),
	"`Clauses(hint.Clause()).Transaction`, read only, SERIALIZABLE":    inReadOnly(readOnly(sql.LevelSerializable), byClause),
	"`Clauses(hint.Clause()).Transaction`, read only, with `PrepareStmt`": func() way {
		w := inReadOnly(readOnly(sql.LevelDefault), byClause)
		w.open = withPrepared
		return w
	}(),
	"`Clauses(dbresolver.Read).Begin`": unprepared(way{read: func(r *run) ([]seenV, error) {
		tx := byClause(r).Clauses(dbresolver.Read).Begin()
		defer tx.Rollback()
		var t Tree
		return answersOf(tx.First(&t, r.id).Error, t)
	}}),
	"a write in a read-only `Transaction`": changed(func(r *run) error {
		return state("25006", byClause(r).Transaction(func(tx *gorm.DB) error {
			return tx.Exec(plusOneSQL, r.id).Error
		}, readOnly(sql.LevelDefault)))
	}),
}

func unprepared(w way) way {
	w.unprepared = true
	return w
}
