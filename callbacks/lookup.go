package callbacks

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// looksBeforeWriting recognizes the reads by which GORM finds out what it has to
// write. A replica would have FirstOrCreate insert a row twice, and a migrator
// add a column that is there. GORM does not mark them; they are known by a shape
// that nobody else's queries have, and if one does, the primary serves it.
func looksBeforeWriting(stmt *gorm.Statement, row bool) bool {
	limit, ok := stmt.Clauses["LIMIT"].Expression.(clause.Limit)
	if !ok || limit.Limit == nil || *limit.Limit != 1 {
		return false
	}
	if row {
		return looksAtColumns(stmt)
	}
	batch := stmt.ReflectValue.Kind() == reflect.Slice // of FindInBatches
	return !stmt.RaiseErrorOnNotFound && !batch && ordersByKeyLast(stmt)
}

// ordersByKeyLast is FirstOrInit's and FirstOrCreate's: the first by primary key,
// and none is no error.
func ordersByKeyLast(stmt *gorm.Statement) bool {
	order, ok := stmt.Clauses["ORDER BY"].Expression.(clause.OrderBy)
	if !ok || len(order.Columns) == 0 {
		return false
	}
	last := order.Columns[len(order.Columns)-1]
	return !last.Desc && last.Column.Name == clause.PrimaryKey && last.Column.Table == clause.CurrentTable
}

// looksAtColumns is the migrator's: a row of a named table, for its columns.
func looksAtColumns(stmt *gorm.Statement) bool {
	for _, name := range [...]string{"WHERE", "ORDER BY", "GROUP BY"} {
		if _, ok := stmt.Clauses[name]; ok {
			return false
		}
	}
	return stmt.TableExpr != nil && stmt.Model == nil && len(stmt.Selects) == 0 && len(stmt.Joins) == 0
}
