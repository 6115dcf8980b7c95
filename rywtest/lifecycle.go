package rywtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// Start starts a server that is not running and returns when it answers queries.
// A standby may still have to catch up then, and its primary may be away.
func (s *Server) Start(ctx context.Context) error {
	ctx, stop := s.c.bound(ctx)
	defer stop()
	if err := s.node.Start(ctx); err != nil {
		return s.fail("start", err)
	}
	return s.fail("start", s.ready(ctx))
}

// ready waits until the server answers, or has ended.
func (s *Server) ready(ctx context.Context) error {
	var last error
	return poll(ctx, seldom, func() (bool, error) {
		if !s.Running() {
			return false, fmt.Errorf("%w any more:\n%s", ErrNotRunning, s.Log())
		}
		last = s.with(ctx, func(context.Context, *pgx.Conn) error { return nil })
		return last == nil, nil
	}, func() string { return fmt.Sprintf("last answer: %v\n%s", last, s.Log()) })
}

// Stop ends the server cleanly (a fast shutdown) and waits until it has ended. A
// primary first sends its standbys all they lack, which takes for ever if one of
// them is frozen; when the context ends the server is still about to stop, and
// StopImmediate or Kill make it.
func (s *Server) Stop(ctx context.Context) error {
	return s.fail("stop", s.node.Shutdown(ctx, backend.Fast))
}

// StopImmediate ends the server without a checkpoint (an immediate shutdown): its
// next start is a crash recovery, during which a standby shows an older state than
// before.
func (s *Server) StopImmediate(ctx context.Context) error {
	return s.fail("stop immediately", s.node.Shutdown(ctx, backend.Immediate))
}

// Restart is Stop and Start.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Kill ends all processes of the server by SIGKILL, also of a frozen one, and
// returns when none is left, so that Start works. The next start is a crash
// recovery.
func (s *Server) Kill(ctx context.Context) error { return s.fail("kill", s.node.Kill(ctx)) }

// KillBackend kills one client backend, of a connection of its own, by SIGKILL.
// PostgreSQL then ends all connections and recovers as after a crash, without a
// new first process: pg_postmaster_start_time() stays the same. KillBackend
// returns when the server answers again, by when it may still be replaying what
// it had replayed before.
func (s *Server) KillBackend(ctx context.Context) error {
	ctx, stop := s.c.bound(ctx)
	defer stop()
	err := s.with(ctx, func(ctx context.Context, witness *pgx.Conn) error {
		err := s.with(ctx, func(ctx context.Context, victim *pgx.Conn) error {
			return s.node.KillProcess(ctx, int(victim.PgConn().PID()))
		})
		if err != nil {
			return err
		}
		return awaitEnd(ctx, witness)
	})
	if err != nil {
		return s.fail("kill a backend", err)
	}
	return s.fail("recover from the kill of a backend", s.ready(ctx))
}

// awaitEnd waits until the server ends a connection.
func awaitEnd(ctx context.Context, conn *pgx.Conn) error {
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return context.Cause(ctx)
		}
	}
}

// Freeze stops all processes of the server, by SIGSTOP or by pausing the container:
// connections stay open and new ones are accepted by the system, but nothing
// answers. Nothing happens if it is frozen already.
func (s *Server) Freeze(ctx context.Context) error { return s.fail("freeze", s.node.Freeze(ctx)) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw(ctx context.Context) error { return s.fail("thaw", s.node.Thaw(ctx)) }

// Partition cuts the server's network: what clients and other servers send it, and
// what it sends them, does not arrive until Heal; connections stay open, and new
// ones, which stay silent, can be made. It needs Options.Partitionable.
// The methods of Server still reach it.
func (s *Server) Partition(ctx context.Context) error {
	return s.fail("partition", s.node.Partition(ctx))
}

// Heal ends a partition; what was sent meanwhile arrives.
func (s *Server) Heal(ctx context.Context) error { return s.fail("heal", s.node.Heal(ctx)) }
