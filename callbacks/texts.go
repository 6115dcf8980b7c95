package callbacks

import (
	"database/sql"
	"runtime"
	"sync"
	"weak"
)

// texts finds the text of a prepared statement for as long as somebody holds it.
var texts stmtTexts

type stmtTexts struct{ m sync.Map } // weak.Pointer[sql.Stmt] -> string

func (t *stmtTexts) add(stmt *sql.Stmt, text string) {
	if stmt == nil {
		return
	}
	key := weak.Make(stmt)
	t.m.Store(key, text)
	runtime.AddCleanup(stmt, func(key weak.Pointer[sql.Stmt]) { t.m.Delete(key) }, key)
}

// of returns the text, or none if it is not known.
func (t *stmtTexts) of(stmt *sql.Stmt) string {
	text, _ := t.m.Load(weak.Make(stmt))
	s, _ := text.(string)
	return s
}
