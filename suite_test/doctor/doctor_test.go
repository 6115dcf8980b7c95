package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/doctor"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// A good set-up is found to be one, by a role that may do nothing but connect, and
// nothing is left of the examination.
func TestHealthy(t *testing.T) {
	name := role(t)
	p := cluster.Primary()
	const objects, conns = "select count(*) from pg_class", "select count(*) from pg_stat_activity where usename ~ '^app_'"
	before := one(t, p, objects)
	r := examine(t, usual(t, name))
	none(t, r, doctor.Fail)
	none(t, r, doctor.Warn)
	want(t, r, doctor.Note, "primary", "failover", "may not ask", "alter role \""+name+"\" replication;")
	for _, check := range []string{"version", "position", "role", "identity", "isolation", "cluster", "follow", "clock"} {
		for _, server := range []string{"replica 1 ", "replica 2 "} {
			found := false
			for _, f := range r.Findings {
				found = found || f.Level == doctor.OK && f.Check == check && strings.HasPrefix(f.Server, server)
			}
			if !found {
				t.Errorf("%s%s: not examined", server, check)
			}
		}
	}
	if r.Failed() {
		t.Error("failed")
	}
	if after := one(t, p, objects); after != before {
		t.Errorf("objects in the database: have %d, want %d as before", after, before)
	}
	for _, s := range cluster.Servers() {
		for end := time.Now().Add(10 * time.Second); one(t, s, conns) != 0; {
			if time.Now().After(end) {
				t.Fatalf("connections are left on %s", s.Name())
			}
		}
	}
}

func TestRoleThatMayAskForTimelines(t *testing.T) {
	r := examine(t, usual(t, role(t, "alter role %s replication")))
	none(t, r, doctor.Fail)
	none(t, r, doctor.Note, "pools", "conflicts")
}

func TestWrongRole(t *testing.T) {
	o := usual(t, "")
	o.Primary, o.Replicas[0] = o.Replicas[0], o.Primary
	r := examine(t, o)
	want(t, r, doctor.Fail, "primary", "role", "a standby", "target_session_attrs=primary")
	want(t, r, doctor.Fail, "replica 1", "role", "not a standby", "a standby's address")
}

func TestNobodyThere(t *testing.T) {
	o := usual(t, role(t))
	o.Replicas[1] = "postgres://someone:" + secret + "@127.0.0.1:1/postgres?connect_timeout=2"
	r := examine(t, o)
	want(t, r, doctor.Fail, "replica 2 127.0.0.1:1", "connect", "refused", "start the server")
	want(t, r, doctor.OK, "replica 1", "follow", "arrived", "")
}

// What the application's pools would run into.
func TestTooFewConnections(t *testing.T) {
	r := examine(t, usual(t, role(t, "alter role %s connection limit 3")))
	want(t, r, doctor.Warn, "primary", "identity", "only 3 of 8 connections could be opened", "more connections for the role")
	want(t, r, doctor.OK, "primary", "identity", "one server, on 3 connections", "")
	none(t, r, doctor.Fail)
}

func TestAnotherCluster(t *testing.T) {
	other, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: 1})
	must(t, err)
	defer other.Close()
	o := usual(t, "")
	o.Replicas[1] = other.Replica(0).DSN()
	o.Wait = time.Second
	r := examine(t, o)
	want(t, r, doctor.Fail, "replica 2", "cluster", "system identifier", "standby of this primary")
	none(t, r, doctor.Fail, "cluster", "follow")
}

// A standby of a server that was promoted beside the primary.
func TestAnotherTimeline(t *testing.T) {
	own, err := rywtest.Start(t.Context(), rywtest.Options{Replicas: 2})
	must(t, err)
	defer own.Close()
	primary, promoted, follower := own.Primary(), own.Replica(0), own.Replica(1)
	must(t, promoted.Promote(t.Context()))
	must(t, follower.Follow(t.Context(), promoted))
	run(t, promoted, "checkpoint")
	run(t, follower, "checkpoint") // its control file follows
	r := examine(t, doctor.Options{Primary: primary.DSN(), Replicas: []string{promoted.DSN(), follower.DSN()}, Wait: time.Second})
	want(t, r, doctor.Fail, "replica 1", "role", "not a standby", "")
	want(t, r, doctor.Fail, "replica 2", "timeline", "the primary's is 1", "pg_rewind")
}

func TestPausedReplay(t *testing.T) {
	must(t, cluster.Replica(0).PauseReplay(t.Context())) // the first: the other is not held up
	defer func() { must(t, cluster.Replica(0).ResumeReplay(t.Context())); replicated(t) }()
	o := usual(t, "")
	o.Wait = 500 * time.Millisecond
	r := examine(t, o)
	want(t, r, doctor.Fail, "replica 1", "paused", "replay is paused", "pg_wal_replay_resume()")
	want(t, r, doctor.Fail, "replica 1", "follow", "did not arrive within 500ms", "pg_stat_replication")
	want(t, r, doctor.OK, "replica 2", "follow", "5 writes arrived", "")
}

func TestApplyDelay(t *testing.T) {
	must(t, cluster.Replica(0).SetApplyDelay(t.Context(), time.Hour))
	defer func() { must(t, cluster.Replica(0).SetApplyDelay(t.Context(), 0)); replicated(t) }()
	o := usual(t, "")
	o.Wait = 500 * time.Millisecond
	r := examine(t, o)
	want(t, r, doctor.Warn, "replica 1", "delay", "recovery_min_apply_delay = 1h", "recovery_min_apply_delay = 0")
	want(t, r, doctor.Fail, "replica 1", "follow", "did not arrive", "")
}

func TestSameServerTwice(t *testing.T) {
	o := usual(t, "")
	o.Replicas[1] = o.Replicas[0]
	want(t, examine(t, o), doctor.Warn, "replica 2", "duplicate", "the same server as replica 1", "once")
}

// Settings are found where they come from, and the fix is for that place: it is run,
// and the finding is gone.
func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set, unset    string // %s is the role
		param         string
		level         doctor.Level
		server, check string
		found, fix    string
	}{
		"asynchronous commit of the role": {
			set: "alter role %s set synchronous_commit = off", level: doctor.Warn, server: "primary", check: "synchronous_commit", found: "off", fix: "reset synchronous_commit;",
		},
		"asynchronous commit of the connection": {
			param: "synchronous_commit=off", level: doctor.Warn, server: "primary", check: "synchronous_commit", found: "off", fix: "out of the connection string",
		},
		"asynchronous commit of the server": {
			set: "alter system set synchronous_commit = off", level: doctor.Warn, server: "primary", check: "synchronous_commit", found: "off", fix: "alter system set synchronous_commit = on; select pg_reload_conf();",
		},
		"writes wait for replay": {
			set: "alter role %s set synchronous_commit = remote_apply", level: doctor.Note, server: "primary", check: "synchronous_commit", found: "remote_apply",
		},
		"serializable of the role": {
			set: "alter role %s set default_transaction_isolation = serializable", level: doctor.Fail, server: "replica 1", check: "isolation", found: "serializable", fix: "reset default_transaction_isolation;",
		},
		"serializable of the database": {
			set: "alter database postgres set default_transaction_isolation = serializable", level: doctor.Fail, server: "replica 2", check: "isolation", found: "serializable", fix: "on the primary: alter database \"postgres\" reset default_transaction_isolation;",
		},
		"serializable of the role in the database": {
			set: "alter role %s in database postgres set default_transaction_isolation = serializable", level: doctor.Fail, server: "replica 2", check: "isolation", found: "serializable", fix: "in database \"postgres\" reset default_transaction_isolation;",
		},
		"read-only": {
			set: "alter role %s set default_transaction_read_only = on", level: doctor.Fail, server: "primary", check: "read-only", found: "on", fix: "reset default_transaction_read_only;",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { // whatever was set and not reset
				run(t, cluster.Primary(), "alter system reset all", "alter database postgres reset all", "select pg_reload_conf()")
				replicated(t)
			})
			role := role(t)
			o := usual(t, role)
			if tc.param != "" {
				o.Primary = as(t, cluster.Primary(), role, tc.param)
			}
			if tc.set != "" {
				run(t, cluster.Primary(), strings.ReplaceAll(tc.set, "%s", role))
			}
			settled := func() { replicated(t) }
			if strings.Contains(tc.set, "alter system") {
				settled = func() { reload(t) }
			}
			settled()
			r := examine(t, o)
			f := find(r, tc.level, tc.server, tc.check)
			if f == nil || !strings.Contains(f.Found, tc.found) || f.Means == "" || !strings.Contains(f.Fix, tc.fix) {
				t.Errorf("want %s %s %s %q, fix %q; have\n%s", tc.level, tc.server, tc.check, tc.found, tc.fix, text(t, r))
				return
			}
			if tc.set == "" || tc.fix == "" {
				return
			}
			_, sql, ok := strings.Cut(f.Fix, ": ")
			if !ok {
				t.Fatalf("fix is no SQL: %q", f.Fix)
			}
			run(t, cluster.Primary(), strings.Split(strings.TrimSuffix(sql, ";"), "; ")...)
			settled()
			if f := find(examine(t, o), tc.level, tc.server, tc.check); f != nil {
				t.Errorf("after the fix: have %+v", *f)
			}
		})
	}
}

func find(r *doctor.Report, level doctor.Level, server, check string) *doctor.Finding {
	for _, f := range r.Findings {
		if f.Level == level && strings.HasPrefix(f.Server, server) && f.Check == check {
			return &f
		}
	}
	return nil
}

// reload has servers read their settings, and waits until new sessions have them.
func reload(t testing.TB) {
	t.Helper()
	for _, s := range cluster.Servers() {
		run(t, s, "begin isolation level read committed; select pg_reload_conf(); select pg_sleep(0.2); commit")
	}
	replicated(t)
}

func TestConflicts(t *testing.T) {
	s := cluster.Replica(0)
	run(t, s, "alter system set max_standby_streaming_delay = -1")
	defer func() { run(t, s, "alter system reset max_standby_streaming_delay"); reload(t) }()
	reload(t)
	r := examine(t, usual(t, ""))
	want(t, r, doctor.Warn, "replica 1", "conflicts", "max_standby_streaming_delay = -1, hot_standby_feedback = off", "alter system set max_standby_streaming_delay = '30s'; select pg_reload_conf();")
	want(t, r, doctor.Note, "replica 2", "conflicts", "max_standby_streaming_delay = 30s", "alter system set hot_standby_feedback = on; select pg_reload_conf();")
	none(t, r, doctor.Fail)
}

// What is missing is named, and granting it is enough.
func TestMissingPrivileges(t *testing.T) {
	name := role(t)
	p := cluster.Primary()
	run(t, p, "revoke execute on function pg_control_system(), pg_control_checkpoint() from public")
	defer run(t, p, "grant execute on function pg_control_system(), pg_control_checkpoint() to public")
	replicated(t)
	r := examine(t, usual(t, name))
	for _, server := range []string{"primary", "replica 1", "replica 2"} {
		want(t, r, doctor.Fail, server, "privileges", "permission denied for function", "grant execute on function pg_catalog.pg_control_system() to \""+name+"\";")
	}
	_, sql, _ := strings.Cut(find(r, doctor.Fail, "primary", "privileges").Fix, ": ")
	run(t, p, strings.Split(strings.TrimSuffix(sql, ";"), "\n")...)
	replicated(t)
	none(t, examine(t, usual(t, name)), doctor.Fail)
}

// A role that may not call the function still writes, if it may have a transaction.
func TestFollowsWithoutTheMessage(t *testing.T) {
	name := role(t)
	const function = "function pg_logical_emit_message(boolean, text, text)"
	run(t, cluster.Primary(), "revoke execute on "+function+" from public")
	defer run(t, cluster.Primary(), "grant execute on "+function+" to public")
	r := examine(t, usual(t, name))
	none(t, r, doctor.Fail)
	want := find(r, doctor.OK, "replica 1", "follow")
	if want == nil {
		t.Errorf("have\n%s", text(t, r))
	}
}

// The program says the same as the report, exits by it and shows no password.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ryw")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/gorm-ryw/gorm-ryw/cmd/ryw").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	role := role(t)
	p, r0 := as(t, cluster.Primary(), role), as(t, cluster.Replica(0), role)
	down := "host=127.0.0.1 port=1 user=someone password=" + secret
	for name, tc := range map[string]struct {
		args  []string
		code  int
		says  string
		quiet bool // nothing was examined
	}{
		"healthy":        {[]string{"doctor", "-primary", p, "-replica", r0}, 0, "doctor: fail=0 warn=0", false},
		"by environment": {[]string{"doctor", "-primary", "env:PRIMARY", "-replica", "env:REPLICA"}, 0, "doctor: fail=0 warn=0", false},
		"json":           {[]string{"doctor", "-json", "-primary", p, "-replica", r0}, 0, `"failed": false`, false},
		"wrong role":     {[]string{"doctor", "-primary", p, "-replica", p}, 1, "not a standby", false},
		"down":           {[]string{"doctor", "-primary", p, "-replica", r0, "-replica", down}, 1, "doctor: fail=1", false},
		"all down":       {[]string{"doctor", "-primary", down, "-replica", down}, 1, "doctor: fail=2", false},
		"no command":     {nil, 2, "usage", true},
		"other command":  {[]string{"heal"}, 2, "usage", true},
		"no replica":     {[]string{"doctor", "-primary", p}, 2, "-replica is missing", true},
		"no primary":     {[]string{"doctor", "-replica", r0}, 2, "-primary is missing", true},
		"unknown flag":   {[]string{"doctor", "-standby", r0}, 2, "flag provided but not defined", true},
		"no such env":    {[]string{"doctor", "-primary", "env:NOTHING", "-replica", r0}, 2, "NOTHING is empty", true},
		"argument":       {[]string{"doctor", "-primary", p, "-replica", r0, down}, 2, "1 arguments", true},
		"not a string":   {[]string{"doctor", "-primary", "postgres://u:" + secret + "@h:x/", "-replica", r0}, 2, "primary: ", true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program, tc.args...)
			cmd.Env = append(cmd.Environ(), "PRIMARY="+p, "REPLICA="+r0)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tc.code {
				t.Errorf("status: have %d, want %d\n%s%s", code, tc.code, &out, &errs)
			}
			if all := out.String() + errs.String(); !strings.Contains(all, tc.says) || strings.Contains(all, secret) {
				t.Errorf("want %q and no password, have\n%s", tc.says, all)
			}
			if tc.quiet != (out.Len() == 0) {
				t.Errorf("report: have %q", out.String())
			}
			if name == "json" {
				var report struct {
					Findings []doctor.Finding `json:"findings"`
				}
				if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Findings) < 10 {
					t.Errorf("have %d findings, %v", len(report.Findings), err)
				}
			}
		})
	}
}
