package rywtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// PauseReplay makes a standby go on receiving WAL without replaying it, and
// returns when replay stands still.
func (s *Server) PauseReplay(ctx context.Context) error {
	return s.fail("pause replay", s.setPaused(ctx, "select pg_wal_replay_pause()", "paused"))
}

// ResumeReplay ends PauseReplay.
func (s *Server) ResumeReplay(ctx context.Context) error {
	return s.fail("resume replay", s.setPaused(ctx, "select pg_wal_replay_resume()", "not paused"))
}

func (s *Server) setPaused(ctx context.Context, command, want string) error {
	return s.withStandby(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, command); err != nil {
			return err
		}
		return awaitText(ctx, conn, "select pg_get_wal_replay_pause_state()", want)
	})
}

// awaitText asks until the answer is want.
func awaitText(ctx context.Context, conn *pgx.Conn, query, want string) error {
	var have string
	return poll(ctx, often, func() (bool, error) {
		err := conn.QueryRow(ctx, query).Scan(&have)
		return have == want, err
	}, func() string { return fmt.Sprintf("%s: have %q, want %q", query, have, want) })
}

// SetApplyDelay makes a standby apply each commit only d after it was made on the
// primary (recovery_min_apply_delay), rounded up to milliseconds; 0 is no delay,
// also for commits that are waiting. It survives restarts, until Follow.
func (s *Server) SetApplyDelay(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return s.fail("set apply delay", fmt.Errorf("have %v, want 0 or more", d))
	}
	millis := fmt.Sprint((d + time.Millisecond - 1).Milliseconds())
	err := s.withStandby(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "alter system set recovery_min_apply_delay = "+millis); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "select pg_reload_conf()"); err != nil {
			return err
		}
		return s.awaitReload(ctx, millis)
	})
	return s.fail("set apply delay", err)
}

// awaitReload waits until the server has read its settings. It asks new
// connections: the postmaster starts their processes after it has told all others
// to reload, the one that replays included.
func (s *Server) awaitReload(ctx context.Context, want string) error {
	const query = "select setting from pg_settings where name = 'recovery_min_apply_delay'"
	var have string
	return poll(ctx, seldom, func() (bool, error) {
		err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, query).Scan(&have)
		})
		return have == want, err
	}, func() string { return fmt.Sprintf("recovery_min_apply_delay: have %s, want %s", have, want) })
}
