package rywtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// Promote makes a standby a primary and returns when it takes writes. It is then
// what Cluster.Primary returns. The old primary is not touched: stop it before, or
// there are two.
func (s *Server) Promote(ctx context.Context) error {
	err := s.withStandby(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "select pg_promote(false)"); err != nil {
			return err
		}
		return awaitText(ctx, conn, "select pg_is_in_recovery()::text", "false")
	})
	if err == nil {
		s.c.promoted(s)
	}
	return s.fail("promote", err)
}

// Follow makes the server a standby of another, in a new role or after a failover,
// and returns when it streams and has replayed what the other had when it was
// asked. The server is stopped first if it runs. What it has and the other lacks,
// writes that the failover has lost, is undone by pg_rewind, or where that is not
// possible by a new base backup. An apply delay is taken back.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	ctx, stop := s.c.bound(ctx)
	defer stop()
	return s.fail("follow "+primary.name, s.follow(ctx, primary))
}

func (s *Server) follow(ctx context.Context, primary *Server) error {
	if s == primary {
		return errors.New("a server cannot follow itself")
	}
	if s.Running() {
		if err := s.Stop(ctx); err != nil {
			return err
		}
	}
	if err := s.restore(ctx, primary); err != nil {
		return err
	}
	return s.begin(ctx, primary)
}

// restore makes the data directory one that can follow primary. A primary records
// the timeline of its promotion only with the next checkpoint, and pg_rewind goes
// by the record.
func (s *Server) restore(ctx context.Context, primary *Server) error {
	err := primary.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "checkpoint")
		return err
	})
	if err != nil {
		return primary.fail("checkpoint", err)
	}
	if err := s.rewind(ctx, primary); err != nil {
		if e := s.clone(ctx, primary); e != nil {
			return errors.Join(err, e)
		}
	}
	return nil
}

func (s *Server) rewind(ctx context.Context, primary *Server) error {
	return s.node.Run(ctx, "pg_rewind", "--no-sync", "--target-pgdata="+s.node.DataDir(),
		"--source-server="+s.toolConninfo(primary)+" dbname=postgres")
}

// clone replaces the data directory by a base backup.
func (s *Server) clone(ctx context.Context, primary *Server) error {
	if err := s.node.Wipe(ctx); err != nil {
		return err
	}
	return s.node.Run(ctx, "pg_basebackup", "--no-sync", "--no-manifest", "--checkpoint=fast", "--wal-method=stream",
		"--pgdata="+s.node.DataDir(), "--dbname="+s.toolConninfo(primary))
}

// copyFrom makes a new server a standby, or leaves nothing running.
func (s *Server) copyFrom(ctx context.Context, primary *Server) error {
	err := s.clone(ctx, primary)
	if err == nil {
		err = s.begin(ctx, primary)
	}
	if err != nil && s.Running() {
		return errors.Join(err, s.node.Kill(context.WithoutCancel(ctx)))
	}
	return err
}

// conninfo is how this server connects to another.
func (s *Server) conninfo(other *Server) string {
	at := s.node.Reach(other.node)
	return fmt.Sprintf("host=%s port=%d user=postgres application_name=%s sslmode=disable gssencmode=disable",
		at.Host, at.Port, s.name)
}

// toolConninfo is conninfo for a program that runs for a moment, without the
// settings that would end its connection.
func (s *Server) toolConninfo(other *Server) string {
	return s.conninfo(other) + " options='-c statement_timeout=0 -c idle_session_timeout=0'"
}

// configure writes the server's settings; without an upstream it is a primary.
func (s *Server) configure(ctx context.Context, upstream *Server) error {
	o := s.c.options
	own := map[string]string{"cluster_name": s.name}
	if upstream == nil {
		return s.node.Configure(ctx, backend.Config{Settings: settings(baseSettings, own, o.Settings)})
	}
	return s.node.Configure(ctx, backend.Config{
		Settings:        settings(baseSettings, own, o.Settings, o.ReplicaSettings),
		PrimaryConninfo: s.conninfo(upstream),
	})
}

// begin starts the server as a standby and waits until it streams and has what
// its primary has.
func (s *Server) begin(ctx context.Context, primary *Server) error {
	if err := s.configure(ctx, primary); err != nil {
		return s.fail("configure", err)
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := s.awaitStreaming(ctx); err != nil {
		return s.fail("wait for streaming", err)
	}
	want, err := primary.Position(ctx)
	if err != nil {
		return err
	}
	return s.WaitCaughtUp(ctx, want)
}

func (s *Server) awaitStreaming(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		const query = "select coalesce((select status from pg_stat_wal_receiver), 'no receiver')"
		if err := awaitText(ctx, conn, query, "streaming"); err != nil {
			return fmt.Errorf("%w\n%s", err, s.Log())
		}
		return nil
	})
}
