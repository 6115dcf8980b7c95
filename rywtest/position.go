package rywtest

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Position returns the insert position of a primary, or the replay position of a
// standby. The insert position covers every commit that was acknowledged before,
// whatever synchronous_commit is; a page header at its end, where no record can
// end, is not counted.
func (s *Server) Position(ctx context.Context) (LSN, error) {
	var p position
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		p, err = askPosition(ctx, conn)
		return err
	})
	if err != nil {
		return 0, s.fail("position", err)
	}
	return p.geometry.round(p.lsn), nil
}

type position struct {
	lsn      LSN
	geometry geometry
}

const positionQuery = `select case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0')
	else pg_current_wal_insert_lsn() end::text,
	current_setting('wal_block_size')::bigint, pg_size_bytes(current_setting('wal_segment_size'))`

func askPosition(ctx context.Context, conn *pgx.Conn) (position, error) {
	var text string
	var p position
	if err := conn.QueryRow(ctx, positionQuery).Scan(&text, &p.geometry.block, &p.geometry.segment); err != nil {
		return p, err
	}
	var high, low uint32
	if _, err := fmt.Sscanf(text, "%X/%X", &high, &low); err != nil {
		return p, fmt.Errorf("position %q: %w", text, err)
	}
	p.lsn = LSN(high)<<32 | LSN(low)
	return p, nil
}

// WaitCaughtUp waits until the server's Position is want or more: on a standby,
// until it has replayed everything before want. If the server stops answering it
// is asked again until the context ends; the error then says how far it was.
func (s *Server) WaitCaughtUp(ctx context.Context, want LSN) error {
	ctx, stop := s.c.bound(ctx)
	defer stop()
	w := wait{s: s, want: want}
	defer w.hangUp()
	return s.fail("wait for position", poll(ctx, often, func() (bool, error) { return w.look(ctx), nil }, w.have))
}

// wait is a wait for a position, over as many connections as it takes.
type wait struct {
	s    *Server
	want LSN
	conn *pgx.Conn // nil while there is none
	at   LSN       // the last position seen
	err  error     // of the last attempt
}

func (w *wait) look(ctx context.Context) bool {
	if w.conn == nil {
		if w.conn, w.err = w.s.admin(ctx); w.err != nil {
			w.conn = nil
			return false
		}
	}
	p, err := askPosition(ctx, w.conn)
	if err != nil {
		w.err = err
		w.hangUp()
		return false
	}
	w.at, w.err = p.lsn, nil
	return p.lsn >= p.geometry.round(w.want)
}

func (w *wait) hangUp() {
	if w.conn != nil {
		hangUp(w.conn)
		w.conn = nil
	}
}

func (w *wait) have() string {
	text := fmt.Sprintf("at %v, want %v", w.at, w.want)
	if w.err != nil {
		text += fmt.Sprintf(" (last answer: %v)", w.err)
	}
	return text
}
