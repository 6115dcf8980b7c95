package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// examine looks at one server by itself.
func (d *doctor) examine(ctx context.Context, s *server) {
	ask, cancel := d.step(ctx)
	defer cancel()
	if err := s.loadSettings(ask); err != nil {
		d.say(s, Fail, "settings", reason(ask, err), "nothing else about it was examined", "")
		return
	}
	if !d.version(s) || !d.isolation(s) {
		return
	}
	d.position(ctx, s)
	if s.sample != nil {
		d.role(s)
		d.identity(ctx, s)
	}
	if s.isPrimary() {
		d.writes(s)
		d.timelines(ctx, s)
	} else {
		d.replays(s)
	}
	d.clock(ctx, s)
}

const minVersion = 14

func (d *doctor) version(s *server) bool {
	var major int
	text := s.settings["server_version"].value
	if _, err := fmt.Sscanf(text, "%d", &major); err == nil && major < minVersion {
		d.say(s, Fail, "version", "PostgreSQL "+text, "it is never relied on: token reads go to the primary, writes are marked",
			fmt.Sprintf("PostgreSQL %d or later", minVersion))
		return false
	}
	d.say(s, OK, "version", "PostgreSQL "+text, "", "")
	return true
}

// position takes a sample as the watcher does.
func (d *doctor) position(ctx context.Context, s *server) {
	ask, cancel := d.step(ctx)
	defer cancel()
	sample, err := s.probe.Take(ask)
	if err == nil {
		s.sample = &sample
		d.say(s, OK, "position", sample.Position.String(), "", "")
		return
	}
	means := "it serves no token reads"
	if s.isPrimary() {
		means = "no write is captured: each leaves a mark, and reads under it go to the primary"
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42501" {
		d.say(s, Fail, "position", reason(ask, err), means, "see the server's log")
		return
	}
	d.say(s, Fail, "privileges", pg.Message, means, d.grants(ask, s))
}

// called are the functions of the watcher's questions.
var called = []string{
	"pg_is_in_recovery()", "pg_last_wal_replay_lsn()", "pg_current_wal_insert_lsn()", "pg_control_checkpoint()",
	"pg_control_system()", "pg_walfile_name(pg_lsn)", "pg_get_wal_replay_pause_state()", "pg_backend_pid()",
	"pg_postmaster_start_time()", "pg_stat_get_wal()", "pg_stat_get_archiver()",
}

// grants are what the role lacks.
func (d *doctor) grants(ctx context.Context, s *server) string {
	rows, err := s.rows(ctx, "select f from unnest('{"+strings.Join(called, ",")+"}'::text[]) f"+
		" where not has_function_privilege('pg_catalog.' || f, 'execute')")
	if err != nil || len(rows) == 0 {
		return "grant execute on the functions of pg_catalog that it names"
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("grant execute on function pg_catalog.%s to %s;", r[0], pgx.Identifier{s.user}.Sanitize()))
	}
	return "on the primary, in this database: " + strings.Join(lines, "\n")
}

func (d *doctor) role(s *server) {
	switch {
	case s.isPrimary() && s.sample.Standby:
		d.say(s, Fail, "role", "a standby", "writes fail, and no position of it can be captured",
			"the primary's address after -primary; with several hosts in it, target_session_attrs=primary")
	case !s.isPrimary() && !s.sample.Standby:
		d.say(s, Fail, "role", "not a standby: it takes writes by itself", "it serves no reads; if it was promoted, the other primary must not be used any more",
			"a standby's address after -replica")
	case s.isPrimary():
		d.say(s, OK, "role", "primary", "", "")
	default:
		d.say(s, OK, "role", "standby", "", "")
	}
}

// identity finds out who answers at the address: more than one connection tells.
func (d *doctor) identity(ctx context.Context, s *server) {
	ask, cancel := d.step(ctx)
	defer cancel()
	lives := map[token.Incarnation]bool{s.sample.Incarnation: true}
	s.pooled = s.sample.Pooled
	opened := 1
	for ; opened < d.Connections; opened++ {
		conn, err := s.src.Dial(ask)
		if err != nil {
			d.say(s, Warn, "identity", fmt.Sprintf("only %d of %d connections could be opened: %s", opened, d.Connections, reason(ask, err)),
				"the application may not be able to open its own", "more connections for the role, the database, the server or the pooler")
			break
		}
		defer closeConn(conn)
		sample, err := watcher.NewProbe(conn).Take(ask)
		if err != nil {
			d.say(s, Fail, "identity", reason(ask, err), "who answers here is not known", "see the server's log")
			return
		}
		s.pooled = s.pooled || sample.Pooled
		lives[sample.Incarnation] = true
	}
	s.several = len(lives) > 1
	d.identified(s, len(lives), opened)
}

const ownAddress = "the server's own address, one for each server; a pooler or balancer only for what does not go through the library"

func (d *doctor) identified(s *server, lives, opened int) {
	switch {
	case s.several && s.isPrimary():
		d.say(s, Fail, "identity", fmt.Sprintf("%d servers answer at this address", lives),
			"writes and positions may be of different servers: nothing is promised", ownAddress)
	case s.several:
		d.say(s, Fail, "identity", fmt.Sprintf("a balancer: %d servers answer at this address", lives),
			"the position is of one server, the read goes to another: it is found out and serves no token reads; with TrustPools reads are stale", ownAddress)
	case s.pooled && s.isPrimary():
		d.say(s, Warn, "identity", "a connection pooler answers at this address",
			"captures work and cost more: every position is asked for in full, on whichever connection there is", ownAddress)
	case s.pooled:
		d.say(s, Fail, "identity", "a connection pooler answers at this address",
			"a connection survives the server behind it and proves nothing: it serves no token reads; with TrustPools reads may be stale after a crash", ownAddress)
	default:
		d.say(s, OK, "identity", fmt.Sprintf("one server, on %d connections", opened), "", "")
	}
}

// isolation reports whether the server answers at all in the default level.
func (d *doctor) isolation(s *server) bool {
	const name = "default_transaction_isolation"
	switch level := s.settings[name].value; {
	case level == "serializable" && !s.isPrimary():
		d.say(s, Fail, "isolation", name+" = "+level,
			"there is no SERIALIZABLE on a standby: every read there fails, and the library's own questions. Nothing else about it was examined",
			s.change(name, "'read committed'"))
		return false
	case level == "repeatable read" && !s.isPrimary():
		d.say(s, Note, "isolation", name+" = "+level, "within a transaction on a replica reads stay as of its first statement", "")
	default:
		d.say(s, OK, "isolation", level, "", "")
	}
	return true
}

// writes is what the primary does with a commit.
func (d *doctor) writes(s *server) {
	const name = "synchronous_commit"
	switch mode := s.settings[name].value; mode {
	case "off":
		d.say(s, Warn, name, "off", "reads see their writes, but a crash of the primary loses acknowledged ones, and a replica gets each up to 3 times wal_writer_delay later: reads wait or go to the primary",
			s.change(name, "on"))
	case "remote_apply":
		d.say(s, Note, name, mode+", synchronous_standby_names = '"+s.settings["synchronous_standby_names"].value+"'",
			"each write waits until those have replayed it; while one is away, writes hang", "")
	default:
		d.say(s, OK, name, mode, "", "")
	}
	const readOnly = "default_transaction_read_only"
	if s.settings[readOnly].value == "on" {
		d.say(s, Fail, "read-only", readOnly+" = on", "writes fail", s.change(readOnly, "off"))
	}
}

// timelines asks as the library does after a failover.
func (d *doctor) timelines(ctx context.Context, s *server) {
	ask, cancel := d.step(ctx)
	defer cancel()
	conn, err := s.src.Dial(pgdial.WalSender(ask))
	if err == nil {
		_, err = conn.PgConn().Exec(ask, "IDENTIFY_SYSTEM").ReadAll()
		closeConn(conn)
	}
	if err == nil {
		d.say(s, OK, "failover", "this role may ask where a timeline ended", "", "")
		return
	}
	d.say(s, Note, "failover", "this role may not ask where a timeline ended: "+reason(ask, err),
		"after a failover everything that was written before counts as possibly lost: reported, and served by the primary",
		fmt.Sprintf("alter role %s replication;", pgx.Identifier{s.user}.Sanitize()))
}

// replays is what holds up replay on a standby.
func (d *doctor) replays(s *server) {
	const delay, feedback, apply = "max_standby_streaming_delay", "hot_standby_feedback", "recovery_min_apply_delay"
	wait, back := s.settings[delay].value, s.settings[feedback].value
	found := delay + " = " + wait + ", " + feedback + " = " + back
	switch {
	case wait == "-1":
		d.say(s, Warn, "conflicts", found, "one long query on this replica holds up replay without bound: reads under tokens wait and go to the primary",
			s.change(delay, "'30s'"))
	case back == "off":
		d.say(s, Note, "conflicts", found, "a vacuum on the primary may end queries here after that time, and replay waits until then; reads that fail so before their first row are sent again elsewhere",
			s.change(feedback, "on")+" -- if the primary may keep dead rows for as long as queries last here")
	default:
		d.say(s, OK, "conflicts", found, "", "")
	}
	if v := s.settings[apply].value; v != "0" && v != "" {
		d.say(s, Warn, "delay", apply+" = "+v, "it is behind by that much, always: no use for reads of recent writes", s.change(apply, "0"))
	}
	if s.sample != nil && s.sample.Paused {
		d.say(s, Fail, "paused", "replay is paused", "it falls further and further behind: reads under tokens go to the primary",
			"on this server: select pg_wal_replay_resume();")
	}
}

// Differences of clocks that are worth a word.
const (
	skewNoted  = 5 * time.Second
	skewWarned = time.Minute
)

func (d *doctor) clock(ctx context.Context, s *server) {
	ask, cancel := d.step(ctx)
	defer cancel()
	ahead, give, err := s.skew(ask)
	if err != nil {
		d.say(s, Warn, "clock", reason(ask, err), "not compared", "")
		return
	}
	d.report.add(clocks(s.label(), ahead, give))
}

// clocks judges by how much a server's clock is ahead of this machine's.
func clocks(server string, ahead, give time.Duration) Finding {
	f := Finding{
		Level: OK, Server: server, Check: "clock",
		Found: fmt.Sprintf("%s ahead of this machine's, give or take %s", ahead.Round(time.Millisecond), give.Round(time.Millisecond)),
	}
	if ahead.Abs() <= skewNoted+give {
		return f
	}
	f.Level = Note
	if ahead.Abs() > skewWarned+give {
		f.Level = Warn
	}
	f.Means = "no proof of freshness uses it; tokens are dated by the clocks of the machines that make them, for MaxTokenAge and time windows"
	f.Fix = "NTP on this machine and on the server's"
	return f
}
