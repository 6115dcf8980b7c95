package watcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5"
)

// A replica shows a commit as soon as it is replayed; the primary only after its
// own flush, its wait for synchronous standbys and the end of the transaction. No
// position can tell, but transaction ids can: what a replica has committed and the
// primary's snapshot calls in progress is what the primary does not show yet.

// Snapshot is which transactions a primary shows as ended: those before Xmax that
// are not in Running (PostgreSQL manual, 9.27.8, pg_snapshot).
type Snapshot struct {
	Xmax    uint64
	Running []uint64
}

// ErrPooled is returned where a question needs to know which server answers.
var ErrPooled = errors.New("server is behind a connection pooler")

// asker is a connection for questions that are not samples, opened when the first
// of them is asked. One question is asked at a time.
type asker struct {
	turn turn // protects what follows, and its use
	conn *pgx.Conn
	// What was known when it was opened: the address may lead elsewhere since, while
	// the server that it led to lives on.
	epoch    int32
	timeline uint32
}

// ask returns the one row that a statement has for answer, and the server process
// that the connection was opened to. A connection on which it failed is given up.
func (n *Node) ask(ctx context.Context, sql string) (row [][]byte, pid uint32, err error) {
	a := &n.asks
	if err := a.turn.take(ctx); err != nil {
		return nil, 0, fmt.Errorf("ask %s: %w", n.Name(), err)
	}
	defer a.turn.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, n.group.cfg.ProbeTimeout,
		fmt.Errorf("probe timeout of %s passed", n.group.cfg.ProbeTimeout))
	defer cancel()
	stop := context.AfterFunc(n.ctx, cancel)
	defer stop()
	if epoch, timeline := n.epoch.Load(), n.group.Timeline(); a.epoch != epoch || a.timeline != timeline {
		a.close()
		a.epoch, a.timeline = epoch, timeline
	}
	if row, err = a.row(ctx, n.dial, sql); err != nil {
		a.close()
		return nil, 0, fmt.Errorf("ask %s: %w", n.Name(), causeOf(ctx, err))
	}
	return row, a.conn.PgConn().PID(), nil
}

func (a *asker) row(ctx context.Context, dial Dial, sql string) ([][]byte, error) {
	if a.conn == nil {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		a.conn = conn
	}
	res, err := a.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	return oneRow(res)
}

// close gives the connection up.
func (a *asker) close() {
	if a.conn != nil {
		(&Probe{conn: a.conn}).close()
		a.conn = nil
	}
}

const snapshotSQL = `select r::int, pg_snapshot_xmax(s)::text, array_to_string(array(select pg_snapshot_xip(s)), ','),
 case when not r then ` + writtenTimeline + ` end
 from (select pg_is_in_recovery() as r, pg_current_snapshot() as s) x`

// errLeftBehind is for a primary whose place another server has taken.
var errLeftBehind = errors.New("primary is on an older timeline than another that is known")

// Snapshot asks a primary which transactions it shows as ended. The error is
// ErrWrongRole for a standby.
func (n *Node) Snapshot(ctx context.Context) (Snapshot, error) {
	row, _, err := n.ask(ctx, snapshotSQL)
	if err != nil {
		return Snapshot{}, err
	}
	if string(row[0]) != "0" {
		return Snapshot{}, fmt.Errorf("snapshot of %s: %w", n.Name(), ErrWrongRole)
	}
	var f fields
	s := Snapshot{Xmax: f.uint(row[1]), Running: f.list(row[2])}
	if timeline, known := uint32(f.uint(row[3])), n.group.Timeline(); timeline < known && f.err == nil {
		n.Redial()
		return Snapshot{}, fmt.Errorf("snapshot of %s: %w: have timeline %d, want %d", n.Name(), errLeftBehind, timeline, known)
	}
	return s, f.err
}

func (f *fields) list(b []byte) []uint64 {
	if len(b) == 0 {
		return nil
	}
	var all []uint64
	for _, part := range strings.Split(string(b), ",") {
		all = append(all, f.uint([]byte(part)))
	}
	return all
}

// aheadAtMost bounds how many transactions a standby is asked about.
const aheadAtMost = 10_000

// aheadSQL says where a standby is, and then how many transactions it has committed
// that a primary's snapshot does not show. An id that the standby has not heard of
// would be an error of pg_xact_status (22023). The snapshot lists ids below its Xmax
// only; from there on any may be in progress.
const aheadSQL = `select pg_is_in_recovery()::int, pg_last_wal_replay_lsn() - '0/0'::pg_lsn,
 greatest(` + replayedTimeline + `, ` + receivedTimeline + `), pg_backend_pid(),
 (select count(*) from (
   select unnest('{%s}'::xid8[]) as id
   union all select generate_series(%d, least(%d, m - 1))::text::xid8 from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as m) y
  ) ids where case when id < pg_snapshot_xmax(pg_current_snapshot()) then pg_xact_status(id) = 'committed' end),
 (pg_snapshot_xmax(pg_current_snapshot())::text::bigint > %d)::int`

// AheadOf asks a standby how many transactions it shows as committed that are not
// ended in a primary's snapshot, and where it was before it looked.
func (n *Node) AheadOf(ctx context.Context, s Snapshot) (int, token.Position, error) {
	ids := make([]string, len(s.Running))
	for i, id := range s.Running {
		ids[i] = strconv.FormatUint(id, 10)
	}
	last := s.Xmax + aheadAtMost
	row, opened, err := n.ask(ctx, fmt.Sprintf(aheadSQL, strings.Join(ids, ","), s.Xmax, last, last))
	if err != nil {
		return 0, token.Position{}, err
	}
	var f fields
	standby, lsn, timeline, pid := f.uint(row[0]), f.uint(row[1]), f.uint(row[2]), f.uint(row[3])
	count, more := f.uint(row[4]), f.uint(row[5])
	switch {
	case f.err != nil:
		return 0, token.Position{}, f.err
	case standby != 1:
		return 0, token.Position{}, fmt.Errorf("ask %s: %w", n.Name(), errPromoted)
	case pid != uint64(opened):
		return 0, token.Position{}, fmt.Errorf("ask %s: %w", n.Name(), ErrPooled)
	}
	return int(count + more), token.Position{Timeline: uint32(timeline), LSN: token.LSN(lsn)}, nil
}

// runningSQL lists the transactions that have an id, whatever their number: each
// holds a lock on it until it is shown as ended (PostgreSQL manual, 54.12, pg_locks).
const runningSQL = `select array_to_string(array(select transactionid::text from pg_locks
 where locktype = 'transactionid' and mode = 'ExclusiveLock' and granted), ',')`

// Running asks a primary for the ids, without their epoch, of the transactions in
// progress that have one.
func (n *Node) Running(ctx context.Context) ([]uint64, error) {
	row, _, err := n.ask(ctx, runningSQL)
	if err != nil {
		return nil, err
	}
	var f fields
	ids := f.list(row[0])
	return ids, f.err
}
