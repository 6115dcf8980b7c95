package callbacks

import (
	"context"
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/internal/failrow"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// A write whose rows the caller reads itself (Raw("INSERT … RETURNING …").Rows())
// commits when they are closed, which *sql.Rows tells nobody. It is run on a
// *sql.Conn of its own, whose Close waits for them.

// openWrite runs a write on a connection of its own and has its end observed.
func (c *call) openWrite(ctx context.Context, run func(context.Context, *sql.Conn) error) error {
	closed, err := c.onOwnConn(ctx, run)
	if err != nil {
		return err
	}
	l := c.layer
	c.own = &session.Session{}
	c.observers.add(c.own)
	group := c.from.Group
	key := group.Key()
	var obs observers
	c.observers.each(func(s *session.Session) {
		s.MarkWrote(key)
		if !s.Collects() { // the caller reads what it collects once the rows are closed
			s.BeginWrite()
			obs.add(s)
		}
	})
	l.open.Add(1)
	go func() {
		defer l.open.Done()
		closed()
		l.wrote(group, &obs)
		obs.each((*session.Session).EndWrite)
	}()
	return nil
}

// onOwnConn runs a statement on a connection of its own. What it returns waits for
// the rows to be closed.
func (c *call) onOwnConn(ctx context.Context, run func(context.Context, *sql.Conn) error) (closed func(), err error) {
	pool, _ := unwrap(c.target)
	if pool == nil {
		return nil, gorm.ErrInvalidDB
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(c.layer.ctx, cancel) // Close does not wait for rows that nobody closes
	conn, err := pool.Conn(ctx)
	if err == nil {
		err = run(ctx, conn)
	}
	closed = func() {
		if conn != nil {
			_ = conn.Close()
		}
		unwatch()
		cancel()
	}
	if err != nil {
		closed() // nothing is open
		return nil, err
	}
	return closed, nil
}

func (c *call) openRows(ctx context.Context, query string, args []any) (rows *sql.Rows, err error) {
	err = c.openWrite(ctx, func(ctx context.Context, conn *sql.Conn) error {
		rows, err = conn.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller reads them
		return err
	})
	return rows, err
}

func (c *call) openRow(ctx context.Context, query string, args []any) (row *sql.Row) {
	err := c.openWrite(ctx, func(ctx context.Context, conn *sql.Conn) error {
		row = conn.QueryRowContext(ctx, query, args...)
		return row.Err()
	})
	if row == nil {
		return failrow.New(err)
	}
	return row
}

// Close ends what the layer still observes and waits for it. Idempotent.
func (l *Layer) Close() {
	l.cancel()
	l.open.Wait()
}
