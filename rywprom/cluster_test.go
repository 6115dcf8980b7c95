package rywprom

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const patience = 30 * time.Second

// logs is what was logged so far.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type fleet struct {
	t       *testing.T
	ctx     context.Context
	cluster *rywtest.Cluster
	db      *gorm.DB
	ryw     *rywplugin.Plugin
	reg     *prometheus.Registry
	log     *logs
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetOf(t, 1, func(c *rywtest.Cluster) string { return c.Primary().DSN() }, func(*rywplugin.Config) {})
}

// newFleetOf starts servers and an application that finds its primary by the DSN.
func newFleetOf(t *testing.T, replicas int, primary func(*rywtest.Cluster) string, change func(*rywplugin.Config)) *fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f := &fleet{t: t, ctx: ctx, cluster: c, reg: prometheus.NewPedanticRegistry(), log: &logs{}}
	if f.db, err = gorm.Open(rywpgx.Open(primary(c)), &gorm.Config{Logger: logger.Discard}); err != nil {
		t.Fatal(err)
	}
	cfg := rywplugin.Config{ProbeInterval: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(f.log, nil))}
	for _, r := range c.Replicas() {
		cfg.Replicas = append(cfg.Replicas, rywpgx.Open(r.DSN()))
	}
	change(&cfg)
	f.ryw = rywplugin.New(cfg)
	if err := f.db.Use(f.ryw); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = f.ryw.Close()
		pool, _ := f.db.DB()
		_ = pool.Close()
	})
	f.reg.MustRegister(New(f.ryw))
	f.exec(f.db, "create table things (id int primary key)")
	return f
}

func (f *fleet) exec(db *gorm.DB, text string) {
	f.t.Helper()
	if err := db.Exec(text).Error; err != nil {
		f.t.Fatal(err)
	}
}

// read is a read under a session, which must see the row.
func (f *fleet) read(db *gorm.DB, id int) {
	f.t.Helper()
	var n int
	tx := db.Raw("select count(*) from things where id = ?", id).Scan(&n)
	if tx.Error != nil || n != 1 {
		f.t.Errorf("have %d rows, %v: %s", n, tx.Error, rywplugin.Explain(tx))
	}
}

// eventually waits until the series say so.
func (f *fleet) eventually(what string, ok func(samples) bool) {
	f.t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		have := gather(f.t, f.reg)
		if ok(have) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: did not come:\n%s\n%s", what, f.log, strings.ReplaceAll(fmt.Sprint(have), " ryw", "\nryw"))
		}
	}
}

func (f *fleet) value(name string, labels ...string) float64 {
	v, _ := gather(f.t, f.reg).sum(name, labels...)
	return v
}

func is(want float64, name string, labels ...string) func(samples) bool {
	return func(s samples) bool { v, ok := s.sum(name, labels...); return ok && v == want }
}

func above(least float64, name string, labels ...string) func(samples) bool {
	return func(s samples) bool { v, ok := s.sum(name, labels...); return ok && v > least }
}

// What happens to a replica shows in its series and in the log.
func TestAFleetInTrouble(t *testing.T) {
	f := newFleet(t)
	replica := `role="replica"`
	mine := f.db.WithContext(session.NewContext(f.ctx, session.New()))
	if err := f.cluster.WaitReplicated(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("replica is proven", is(1, "ryw_node_state", replica, `state="proven"`))
	f.exec(mine, "insert into things values (1)")
	f.eventually("reads on the replica", func(s samples) bool {
		f.read(mine, 1)
		v, _ := s.sum("ryw_reads_total", replica, `hint="read_your_writes"`)
		return v > 0
	})
	if f.value("ryw_captures_total") < 2 {
		t.Error("writes were not captured")
	}

	if err := f.cluster.Replica(0).PauseReplay(f.ctx); err != nil {
		t.Fatal(err)
	}
	fallbacks, reads := f.value("ryw_token_fallbacks_total", `reason="behind"`), f.value("ryw_token_reads_total")
	f.exec(mine, "insert into things values (2)")
	f.read(mine, 2)
	if have := f.value("ryw_token_fallbacks_total", `reason="behind"`); have != fallbacks+1 {
		t.Errorf("fallbacks: have %v, want one more than %v", have, fallbacks)
	}
	if have := f.value("ryw_token_reads_total"); have != reads+1 {
		t.Errorf("token reads: have %v, want one more than %v", have, reads)
	}
	f.eventually("gap", above(0, "ryw_replica_gap_bytes"))
	f.eventually("paused", is(1, "ryw_replica_replay_paused"))
	f.eventually("lag", above(0.1, "ryw_replica_lag_seconds"))
	if f.value("ryw_node_state", replica, `state="proven"`) != 1 {
		t.Error("a replica that is behind is not proven any more")
	}
	at := f.value("ryw_node_position_bytes", replica)

	if err := f.cluster.Replica(0).ResumeReplay(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("no gap", is(0, "ryw_replica_gap_bytes"))
	f.eventually("no lag", is(0, "ryw_replica_lag_seconds"))
	if f.value("ryw_node_position_bytes", replica) <= at {
		t.Error("the position stands still")
	}

	if err := f.cluster.Replica(0).Kill(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("down", is(1, "ryw_node_state", replica, `state="down"`))
	f.eventually("told in the log", func(samples) bool {
		return strings.Contains(f.log.String(), `level=WARN msg="gorm-ryw: replica does not answer"`)
	})
	f.read(mine, 2)
	if f.value("ryw_token_fallbacks_total", `reason="none_healthy"`) == 0 {
		t.Error("a fallback for want of a replica is not counted")
	}
	if f.value("ryw_node_state", replica, `state="proven"`) != 0 {
		t.Error("still proven")
	}
	if strings.Contains(f.log.String(), "select") {
		t.Errorf("a query was logged: %s", f.log)
	}
}

// The statement is explained, not what is read on its behalf: on real tables, as
// preloads need them.
func TestExplainIntoWithPreloads(t *testing.T) {
	type Part struct{ ID, ThingID int }
	type Thing struct {
		ID    int
		Parts []Part
	}
	f := newFleet(t)
	f.exec(f.db, "create table parts (id int primary key, thing_id int)")
	f.exec(f.db, "insert into things values (1)")
	f.exec(f.db, "insert into parts values (1, 1)")
	if err := f.cluster.WaitReplicated(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("replica is proven", is(1, "ryw_node_state", `role="replica"`, `state="proven"`))
	var e rywplugin.Explanation
	ctx := rywplugin.ExplainInto(f.ctx, &e)
	var things []Thing
	err := f.db.WithContext(ctx).Scopes(scopes.StaleOK()).Preload("Parts", func(db *gorm.DB) *gorm.DB { return db.Scopes(scopes.Strong()) }).Find(&things).Error
	if err != nil || len(things) != 1 || len(things[0].Parts) != 1 {
		t.Fatalf("have %+v, %v", things, err)
	}
	if !e.Replica {
		t.Errorf("have %s, want that of the statement, on the replica", e)
	}
}
