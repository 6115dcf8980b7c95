package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/pgdial"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// server is one address and what is known of who answers there.
type server struct {
	role, name string
	src        *pgdial.Source
	conn       *pgx.Conn // nil if there is none
	probe      *watcher.Probe
	sample     *watcher.Sample // nil if it cannot be had
	settings   map[string]setting
	user       string
	database   string
	pooled     bool
	several    bool
}

// setting is a setting of the application's connections, with its unit, and where it
// comes from.
type setting struct{ value, source string }

func (s *server) isPrimary() bool { return s.role == "primary" }

func (s *server) label() string { return s.role + " " + s.name }

// say adds a finding about a server.
func (d *doctor) say(s *server, l Level, check, found, means, fix string) {
	d.report.add(Finding{l, s.label(), check, found, means, fix})
}

func (d *doctor) connect(ctx context.Context, s *server) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	conn, err := s.src.Dial(ctx)
	if err != nil {
		means := "it serves no reads: what it would have served, the primary does. Nothing else about it was examined"
		if s.isPrimary() {
			means = "nothing can be written, nor captured. Nothing else about it was examined"
		}
		d.say(s, Fail, "connect", reason(ctx, err), means, connectFix(err))
		return
	}
	s.conn, s.probe = conn, watcher.NewProbe(conn)
}

func connectFix(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "28000":
			return "a line of pg_hba.conf for this role, database and client address; select pg_reload_conf();"
		case "28P01":
			return "the password in the connection string"
		case "3D000":
			return "the database's name in the connection string"
		case "57P03":
			return "wait until the server has started; hot_standby = on if it is a standby"
		}
	}
	return "start the server, or correct host and port in the connection string"
}

// reason is an error in one line, with why its context has ended.
func reason(ctx context.Context, err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		text += " (" + cause.Error() + ")"
	}
	return text
}

func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // given up either way
}

// rows asks in one message and without preparing anything, which works through every
// pooler. A NULL is the empty string.
func (s *server) rows(ctx context.Context, sql string) ([][]string, error) {
	res, err := s.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for _, r := range res {
		for _, row := range r.Rows {
			texts := make([]string, len(row))
			for i, v := range row {
				texts[i] = string(v)
			}
			all = append(all, texts)
		}
	}
	return all, nil
}

// A standby with the default of SERIALIZABLE answers nothing but in a transaction of
// another level.
const settingsSQL = `begin isolation level read committed; select name, current_setting(name), source, current_user, current_database() from pg_settings
 where name in ('server_version', 'synchronous_commit', 'default_transaction_isolation', 'default_transaction_read_only',
 'max_standby_streaming_delay', 'hot_standby_feedback', 'recovery_min_apply_delay', 'synchronous_standby_names'); commit`

func (s *server) loadSettings(ctx context.Context) error {
	rows, err := s.rows(ctx, settingsSQL)
	if err != nil {
		return err
	}
	s.settings = map[string]setting{}
	for _, r := range rows {
		s.settings[r[0]] = setting{r[1], r[2]}
		s.user, s.database = r[3], r[4]
	}
	return nil
}

// change is how a setting becomes another for the application, from where it comes
// from now.
func (s *server) change(name, value string) string {
	role, db := pgx.Identifier{s.user}.Sanitize(), pgx.Identifier{s.database}.Sanitize()
	switch s.settings[name].source {
	case "client":
		return "take " + name + " out of the connection string"
	case "user":
		return fmt.Sprintf("on the primary: alter role %s reset %s;", role, name)
	case "database":
		return fmt.Sprintf("on the primary: alter database %s reset %s;", db, name)
	case "database user":
		return fmt.Sprintf("on the primary: alter role %s in database %s reset %s;", role, db, name)
	case "command line":
		return fmt.Sprintf("start the server without %s on its command line, and in postgresql.conf: %s = %s", name, name, value)
	}
	return fmt.Sprintf("on this server: alter system set %s = %s; select pg_reload_conf();", name, value)
}

// skew is by how much a server's clock is ahead of this machine's, and by how much
// that may be wrong.
func (s *server) skew(ctx context.Context) (ahead, give time.Duration, err error) {
	before := time.Now()
	rows, err := s.rows(ctx, "select extract(epoch from clock_timestamp())")
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(before)
	epoch, err := strconv.ParseFloat(rows[0][0], 64)
	if err != nil {
		return 0, 0, err
	}
	there := time.UnixMicro(int64(epoch * 1e6))
	return there.Sub(before.Add(took / 2)), took / 2, nil
}
