package scopes

import (
	"slices"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// isCondition reports whether a scope is executed on a handle that only groups
// conditions, as in db.Where(db.Where(…).Scopes(scope)).First(&x): such a handle is
// never executed, so it has nothing to write its rows to and no text.
func isCondition(stmt *gorm.Statement) bool {
	_, row := stmt.Settings.Load("rows")
	return stmt.Dest == nil && stmt.SQL.Len() == 0 && !row && !stmt.DB.DryRun
}

// carry has the group's last condition take the hint to the statement that the
// group is built into: nothing else of the group gets there.
func carry(stmt *gorm.Statement, h *policy.Hint) {
	c := stmt.Clauses["WHERE"]
	where, ok := c.Expression.(clause.Where)
	if !ok || len(where.Exprs) == 0 {
		return // a group without conditions is not built
	}
	c.Expression = clause.Where{Exprs: lastCarries(where.Exprs, h)}
	stmt.Clauses["WHERE"] = c
}

// lastCarries returns exprs with a carrier in the last place. OR and AND stay what
// they are, because a list of conditions is joined by the types of its members.
func lastCarries(exprs []clause.Expression, h *policy.Hint) []clause.Expression {
	if len(exprs) == 0 {
		return nil
	}
	exprs = slices.Clone(exprs)
	last := &exprs[len(exprs)-1]
	switch e := (*last).(type) {
	case clause.OrConditions:
		*last = clause.OrConditions{Exprs: lastCarries(e.Exprs, h)}
	case clause.AndConditions:
		*last = clause.AndConditions{Exprs: lastCarries(e.Exprs, h)}
	default:
		*last = carrier{e, h}
	}
	return exprs
}

// carrier is a condition with a hint.
type carrier struct {
	clause.Expression
	hint *policy.Hint
}

// Build implements clause.Expression.
func (c carrier) Build(b clause.Builder) {
	if stmt, ok := b.(*gorm.Statement); ok {
		if _, ok := stmt.Plugins[PluginName]; !ok {
			_ = stmt.AddError(ErrNoPlugin)
		}
		stmt.Settings.Store(hintKey, OnQuery(stmt).And(c.hint))
	}
	_ = b.WriteByte('(') // a builder keeps its errors
	c.Expression.Build(b)
	_ = b.WriteByte(')')
}
