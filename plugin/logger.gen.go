package rywplugin

// This file is not generated. GORM prints the line of the program that a statement
// comes from: the first outside of its own folder and of files named *.gen.go
// (gorm.io/gorm/utils, CallerFrame). The logger below stands in between.

import (
	"context"
	"time"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Logger returns a logger for gorm.Config that prints what l prints, and behind each
// statement, as a comment, the node it went to and why:
//
//	SELECT * FROM "orders" WHERE id = 7 /* r1:5432: replica has caught up */
//
// What l does not print costs nothing.
func Logger(l logger.Interface) logger.Interface { return explaining{l} }

type explaining struct{ logger.Interface }

var _ gorm.ParamsFilter = explaining{}

// LogMode implements logger.Interface.
func (e explaining) LogMode(level logger.LogLevel) logger.Interface {
	return explaining{e.Interface.LogMode(level)}
}

// ParamsFilter implements gorm.ParamsFilter by l's, if it has one.
func (e explaining) ParamsFilter(ctx context.Context, sql string, params ...any) (string, []any) {
	if f, ok := e.Interface.(gorm.ParamsFilter); ok {
		return f.ParamsFilter(ctx, sql, params...)
	}
	return sql, params
}

// Trace implements logger.Interface.
func (e explaining) Trace(ctx context.Context, begin time.Time, statement func() (string, int64), err error) {
	e.Interface.Trace(ctx, begin, func() (string, int64) {
		sql, rows := statement()
		d, _ := callbacks.DecisionAt(ctx)
		if d.Reason == policy.Undecided {
			return sql, rows
		}
		return sql + " /* " + explanation(d).String() + " */", rows
	}, err)
}
