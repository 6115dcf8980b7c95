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
func (l *Layer) Pick(ctx context.Context, s *session.Session) (*sql.Conn, policy.Decision, error) {
	p, err := l.homePool()
	if err != nil {
		return nil, policy.Decision{}, err
	}
	q := policy.Request{Level: policy.ReadYourWrites, Set: p.readSet(), NoChecks: true}
	q.Honour(s)
	for {
		d := l.cfg.Router.Decide(ctx, &q)
		if d.Replica == nil {
			break
		}
		conn, err := aliveConn(ctx, d.Replica.Pool)
		if err == nil {
			l.cfg.Router.Counted(d)
			return conn, d, nil
		}
		if ctx.Err() != nil || !worthRetrying(err) {
			return nil, d, err
		}
		if q.Exclude != nil { // the second one
			break
		}
		q.Exclude = d.Replica
	}
	return l.pickPrimary(ctx, p, s)
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

func (l *Layer) pickPrimary(ctx context.Context, p *Pool, s *session.Session) (*sql.Conn, policy.Decision, error) {
	d := policy.Decision{Reason: policy.Behind, Level: policy.ReadYourWrites}
	obs := observers{few: [4]*session.Session{s}}
	lost, err := l.guard(ctx, p.known.Group, &obs)
	if err != nil {
		return nil, d, err
	}
	d.Lost = lost
	conn, err := aliveConn(ctx, p.DB)
	return conn, d, err
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
