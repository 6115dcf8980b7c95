package callbacks

import (
	"context"
	"database/sql"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
)

// A read that fell back to the primary is under way until its rows are closed. GORM
// closes them for Find and its like; those of Rows and Row are the caller's, who is
// followed as for a write, see rows.go.

// heldAtMost is how long rows that nobody closes count as a read under way.
const heldAtMost = time.Minute

// outlives reports whether the statement is counted as under way and will be when
// its callbacks have ended.
func (c *call) outlives() bool {
	return c.keepsOpen && c.request.Counts() && c.layer.ctx.Err() == nil
}

// hold runs the statement and ends the read when its rows are closed.
func (c *call) hold(ctx context.Context, run func(context.Context, *sql.Conn) error) error {
	if c.unit != nil {
		ctx = observed(ctx, c.unit)
	}
	closed, err := c.onOwnConn(ctx, run)
	if err != nil {
		if c.unit != nil {
			c.unit.finish()
		}
		return err
	}
	l, end := c.layer, c.request.Hand()
	late := time.AfterFunc(heldAtMost, end)
	l.open.Add(1)
	go func() {
		defer l.open.Done()
		closed()
		late.Stop()
		end()
	}()
	return nil
}

func (c *call) heldRows(ctx context.Context, query string, args []any) (rows *sql.Rows, err error) {
	err = c.hold(ctx, func(ctx context.Context, conn *sql.Conn) error {
		rows, err = conn.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller reads them
		return err
	})
	return rows, err
}

func (c *call) heldRow(ctx context.Context, query string, args []any) (row *sql.Row) {
	err := c.hold(ctx, func(ctx context.Context, conn *sql.Conn) error {
		row = conn.QueryRowContext(ctx, query, args...)
		return row.Err()
	})
	if row == nil {
		return failrow.New(err)
	}
	return row
}
