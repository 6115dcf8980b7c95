package rywplugin

import (
	"database/sql"
	"errors"
	"log/slog"
	"math"
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
		"mode unknown":          {Config{Mode: 9}, "Mode", "have Mode(9)"},
		"window negative":       {Config{Window: -1}, "Window", "have -1ns"},
		"rate negative":         {Config{Fallback: policy.Fallback{Rate: -1}}, "Fallback.Rate", "have -1"},
		"rate is no number":     {Config{Fallback: policy.Fallback{Rate: math.NaN()}}, "Fallback.Rate", "have NaN"},
		"burst negative":        {Config{Fallback: policy.Fallback{Rate: 1, Burst: -1}}, "Fallback.Burst", "have -1"},
		"burst without rate":    {Config{Fallback: policy.Fallback{Burst: 1}}, "Fallback.Burst", "without a Rate"},
		"concurrent negative":   {Config{Fallback: policy.Fallback{Concurrent: -1}}, "Fallback.Concurrent", "have -1"},
		"fallback wait":         {Config{Fallback: policy.Fallback{Concurrent: 1, Wait: -2}}, "Fallback.Wait", "have -2ns"},
		"stale without cap":     {Config{Fallback: policy.Fallback{Stale: true}}, "Fallback.Stale", "without a cap"},
		"high negative":         {Config{Rotation: policy.Rotation{High: -2}}, "Rotation.High", "have -2ns"},
		"high beyond measure":   {Config{Rotation: policy.Rotation{High: time.Hour}}, "Rotation.High", "want 8m0s or less"},
		"low above high":        {Config{Rotation: policy.Rotation{High: time.Second, Low: time.Second}}, "Rotation.Low", "less than High, which is 1s"},
		"settle negative":       {Config{Rotation: policy.Rotation{Settle: -1}}, "Rotation.Settle", "have -1ns"},
		"stuck negative":        {Config{Rotation: policy.Rotation{StuckAfter: -1}}, "Rotation.StuckAfter", "have -1ns"},
		"keep negative":         {Config{Rotation: policy.Rotation{Keep: -1}}, "Rotation.Keep", "have -1"},
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
		"caps":        {Fallback: policy.Fallback{Rate: 0.5, Burst: 3, Concurrent: 2, Wait: NoWait, Stale: true}},
		"rotation":    {Rotation: policy.Rotation{High: 4 * time.Minute, Low: time.Nanosecond, Settle: time.Hour, Keep: 3, StuckAfter: time.Hour}},
		"no rotation": {Rotation: policy.Rotation{High: NoRotation, Keep: -7}},
		"low default": {Rotation: policy.Rotation{High: time.Second}},
		"window":      {Window: time.Second, Mode: PrimaryOnly},
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
