//go:build linux || darwin

package rywtest_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

func TestSettings(t *testing.T) {
	c := start(t, rywtest.Options{
		Replicas: 1,
		// Fewer than a template with the default would allow a standby to have.
		Settings:        map[string]string{"max_connections": "20", "log_line_prefix": `it's a \ test`},
		ReplicaSettings: map[string]string{"work_mem": "5MB", "log_line_prefix": "other"},
	})
	for _, test := range []struct {
		s          *rywtest.Server
		name, want string
	}{
		{c.Primary(), "max_connections", "20"},
		{c.Replica(0), "max_connections", "20"},
		{c.Primary(), "log_line_prefix", `it's a \ test`},
		{c.Replica(0), "log_line_prefix", "other"},
		{c.Primary(), "work_mem", "4MB"},
		{c.Replica(0), "work_mem", "5MB"},
	} {
		have := text(t, test.s, "current_setting('"+test.name+"')")
		if have != test.want {
			t.Errorf("%s of %s: have %q, want %q", test.name, test.s.Name(), have, test.want)
		}
	}
}

// hostile are settings under which ordinary connections are of no use.
var hostile = map[string]string{
	"client_encoding": "LATIN1", "datestyle": "German", "search_path": "", "standard_conforming_strings": "off",
	"default_transaction_isolation": "serializable", "default_transaction_read_only": "on", "statement_timeout": "1",
	"lock_timeout": "1", "idle_session_timeout": "1", "idle_in_transaction_session_timeout": "1",
}

func TestKitWorksWithSettingsThatBreakQueries(t *testing.T) {
	settings := maps.Clone(hostile)
	c, err := rywtest.Start(within(t, patience), rywtest.Options{Replicas: 1, Settings: settings})
	must(t, err)
	defer c.Close()
	clear(settings) // the caller's, from now on
	p, r := c.Primary(), c.Replica(0)
	must(t, r.PauseReplay(within(t, patience)))
	must(t, r.ResumeReplay(within(t, patience)))
	must(t, r.SetApplyDelay(within(t, patience), time.Millisecond))
	must(t, r.KillBackend(within(t, patience)))
	must(t, c.WaitReplicated(within(t, patience)))
	must(t, p.Stop(within(t, patience)))
	must(t, r.Promote(within(t, patience)))
	must(t, p.Follow(within(t, patience), r))
	conn := connect(t, p)
	if have, err := ask(within(t, patience), conn, "current_setting('lock_timeout')"); err == nil && have != "1ms" {
		t.Errorf("have a lock_timeout of %s, want the caller's first 1ms", have)
	}
}

// The server knows names in upper and lower case, and so does the kit.
func TestSettingsInUpperCase(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1, Settings: map[string]string{"FSYNC": "on", "Max_Connections": "30"}})
	for name, want := range map[string]string{"fsync": "on", "max_connections": "30"} {
		if have := text(t, c.Replica(0), "current_setting('"+name+"')"); have != want {
			t.Errorf("%s: have %s, want %s", name, have, want)
		}
	}
}

func TestInitArgs(t *testing.T) {
	c := start(t, rywtest.Options{Replicas: 1, InitArgs: []string{"--wal-segsize=1", "-E", "UTF8", "-gTsimple"}})
	if have := text(t, c.Replica(0), "current_setting('wal_segment_size')"); have != "1MB" {
		t.Errorf("have WAL segments of %s, want 1MB", have)
	}
}

func TestBadOptions(t *testing.T) {
	t.Setenv(rywtest.EnvBackend, "")
	for want, o := range map[string]rywtest.Options{
		"options: Settings: Port is set by rywtest":                    {Settings: map[string]string{"Port": "1"}},
		"options: ReplicaSettings: primary_conninfo is set by rywtest": {ReplicaSettings: map[string]string{"primary_conninfo": ""}},
		`options: Backend: have "moon", want "local"`:                  {Backend: "moon"},
		`options: Settings: "a b" is not a name of a setting`:          {Settings: map[string]string{"a b": "1"}},
		`options: Settings: "work_mem = 1\nport" is not a name`:        {Settings: map[string]string{"work_mem = 1\nport": "1"}},
		`options: Settings: work_mem is there twice`:                   {Settings: map[string]string{"work_mem": "1MB", "Work_Mem": "2MB"}},
		`options: Settings: work_mem: value "\x00" holds a zero byte`:  {Settings: map[string]string{"work_mem": "\x00"}},
		"options: ReplicaSettings: include is set by rywtest":          {ReplicaSettings: map[string]string{"include": "/x"}},
		"options: InitArgs: --pgdata=/x is set by rywtest":             {InitArgs: []string{"-k", "--pgdata=/x"}},
		"options: InitArgs: --user=x is set by rywtest":                {InitArgs: []string{"--user=x"}},
		"options: InitArgs: -kD/x is set by rywtest":                   {InitArgs: []string{"-kD/x"}},
		`options: InitArgs: "--x\x00" holds a zero byte`:               {InitArgs: []string{"--x\x00"}},
		"options: Replicas: have 21, want at most 20":                  {Replicas: 21},
		"options: Replicas: have 2, want at most 1":                    {Settings: map[string]string{"Max_WAL_Senders": "1"}},
	} {
		c, err := rywtest.Start(context.Background(), o)
		if c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("have error %v, want %q", err, want)
		}
	}
	t.Setenv(rywtest.EnvBackend, "sun")
	if _, err := rywtest.Start(context.Background(), rywtest.Options{}); err == nil || !strings.Contains(err.Error(), `"sun"`) {
		t.Errorf("have error %v, want one about the back-end named by the environment", err)
	}
}
