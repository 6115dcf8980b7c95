package rywplugin

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// Each message starts with the name of the field that is to be changed.
func TestInvalidConfig(t *testing.T) {
	replica := postgres.Open("host=127.0.0.1 port=1 user=u")
	foreign := sql.OpenDB(stdlib.GetConnector(*mustParse(t)))
	defer foreign.Close()
	for name, tc := range map[string]struct {
		cfg   Config
		field string
		want  string
	}{
		"replica nil":           {Config{Replicas: []gorm.Dialector{replica, nil}}, "Replicas[1]", "have nil"},
		"replica without DSN":   {Config{Replicas: []gorm.Dialector{postgres.New(postgres.Config{Conn: foreign})}}, "Replicas[0]", "no PostgreSQL connection string"},
		"replica of another":    {Config{Replicas: []gorm.Dialector{otherDialector{}}}, "Replicas[0]", "dialector is rywplugin.otherDialector"},
		"replica's DSN is bad":  {Config{Replicas: []gorm.Dialector{replica, postgres.Open("host=h port=x password=secret")}}, "Replicas[1]", "port"},
		"wait negative":         {Config{MaxWait: -2}, "MaxWait", "have -2ns"},
		"token age negative":    {Config{MaxTokenAge: -2}, "MaxTokenAge", "have -2ns"},
		"capture negative":      {Config{CaptureTimeout: -1}, "CaptureTimeout", "have -1ns"},
		"interval negative":     {Config{ProbeInterval: -1}, "ProbeInterval", "have -1ns"},
		"probe negative":        {Config{ProbeTimeout: -1}, "ProbeTimeout", "have -1ns"},
		"probe too short":       {Config{ProbeTimeout: time.Microsecond}, "ProbeTimeout", "want 1ms or more"},
		"default unknown":       {Config{Default: 9}, "Default", "have Default(9)"},
		"trust and replicas":    {Config{TrustPools: true, Replicas: []gorm.Dialector{replica}}, "TrustPools", "Replicas"},
		"safe function":         {Config{SafeFunctions: []string{""}}, "SafeFunctions", ""},
		"writing function":      {Config{WritingFunctions: []string{"not a name("}}, "WritingFunctions", ""},
		"table":                 {Config{PrimaryTables: []string{""}}, "PrimaryTables", ""},
		"the first one decides": {Config{MaxWait: -2, ProbeTimeout: -1}, "MaxWait", ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, fakepg.New(t, fakepg.PrimaryAt(1000)))
			pool := db.ConnPool
			p := New(tc.cfg)
			defer p.Close()
			err := db.Use(p)
			if !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "secret") {
				t.Fatalf("have %v, want ErrConfig", err)
			}
			_, message, _ := strings.Cut(err.Error(), ErrConfig.Error()+": ")
			if !strings.HasPrefix(message, tc.field+":") || !strings.Contains(message, tc.want) {
				t.Errorf("have %q, want %s: … %s", message, tc.field, tc.want)
			}
			if db.ConnPool != pool || len(db.Plugins) != 0 || db.Callback().Query().Get("gorm-ryw:route") != nil {
				t.Error("the handle was changed")
			}
		})
	}
}

func TestValidConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"zero":        {},
		"no wait":     {MaxWait: NoWait},
		"any age":     {MaxTokenAge: AnyAge},
		"stale ok":    {Default: StaleOK, Balancer: policy.RoundRobin()},
		"trust pools": {TrustPools: true},
		"names":       {Cluster: "orders", SafeFunctions: []string{"app.total"}, WritingFunctions: []string{"now"}, PrimaryTables: []string{"jobs"}},
		"durations":   {MaxWait: time.Second, MaxTokenAge: time.Second, CaptureTimeout: time.Second, ProbeInterval: time.Second, ProbeTimeout: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			use(t, open(t, fakepg.New(t, fakepg.PrimaryAt(1000))), cfg)
		})
	}
}

func TestDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	if c.MaxWait != DefaultMaxWait || c.MaxTokenAge != DefaultMaxTokenAge || c.CaptureTimeout != DefaultCaptureTimeout ||
		c.ProbeInterval != DefaultProbeInterval || c.ProbeTimeout != DefaultProbeTimeout || c.Logger == nil || c.Default != Strong {
		t.Errorf("have %+v", c)
	}
	set := Config{MaxWait: 1, MaxTokenAge: 2, CaptureTimeout: 3, ProbeInterval: 4, ProbeTimeout: 5, Logger: slog.Default()}
	if have := set.withDefaults(); have.MaxWait != 1 || have.MaxTokenAge != 2 || have.CaptureTimeout != 3 || have.ProbeInterval != 4 || have.ProbeTimeout != 5 {
		t.Errorf("have %+v, want what was set", have)
	}
	off := Config{MaxWait: NoWait, MaxTokenAge: AnyAge}.withDefaults().settings()
	if off.Wait != 0 || off.MaxTokenAge != 0 {
		t.Errorf("switched off: have %+v", off)
	}
}

// A plugin's configuration is its own from New on.
func TestConfigIsCopied(t *testing.T) {
	cfg := Config{MaxWait: time.Second}
	p := New(cfg)
	cfg.MaxWait = time.Hour
	if have := p.router.Settings().Wait; have != time.Second {
		t.Errorf("have %s", have)
	}
}
