package callbacks

import (
	"context"
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// Pick returns a connection to a server that has what a session must see, chosen as
// for a read without a table.
func (l *Layer) Pick(ctx context.Context, s *session.Session) (conn *sql.Conn, err error) {
	p, err := l.homePool()
	if err != nil {
		return nil, err
	}
	q := policy.Request{Level: policy.ReadYourWrites, Set: p.readSet()}
	defer q.End() // how long the connection is used nobody tells
	q.Honour(s)
	_, err = l.onReplica(ctx, &q, func(pool *sql.DB) (err error) {
		conn, err = aliveConn(ctx, pool)
		return err
	})
	if conn != nil || err != nil {
		return conn, err
	}
	if _, err := l.guard(ctx, p.known.Group, &observers{few: [4]*session.Session{s}}); err != nil {
		return nil, err
	}
	return aliveConn(ctx, p.DB)
}

// aliveConn takes a connection from a pool, which may have died in it.
func aliveConn(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.PingContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// ReadSet returns the replicas that a read without a table would be served by; nil
// if there are none.
func (l *Layer) ReadSet() *policy.Set {
	p, err := l.homePool()
	if err != nil {
		return nil
	}
	return p.readSet()
}

// homePool is the pool that GORM was opened with.
func (l *Layer) homePool() (*Pool, error) {
	db := l.db.Load()
	if db == nil {
		return nil, gorm.ErrInvalidDB
	}
	pool, _ := unwrap(db.Config.ConnPool)
	if pool == nil {
		return nil, gorm.ErrInvalidDB
	}
	known := l.cfg.Router.Pools.Lookup(pool)
	if known == nil {
		known = &policy.Pool{Group: l.home}
	}
	return &Pool{DB: pool, layer: l, known: known}, nil
}
