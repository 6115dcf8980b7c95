// Package rywpgx_test proves the driver-level road on real servers: that it sees
// every commit, that it costs no round trip, and that in everything else it does
// what gorm.io/driver/postgres does.
package rywpgx_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/sqlread"
	"github.com/gorm-ryw/gorm-ryw/rywpgx"
	"github.com/gorm-ryw/gorm-ryw/rywtest"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

var cluster *rywtest.Cluster

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := rywtest.Start(ctx, rywtest.Options{
		Replicas: 1,
		Settings: map[string]string{"autovacuum": "off", "max_prepared_transactions": "10"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cluster = c
	code := m.Run()
	if err := c.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// who is put into a context to have what is done with it observed.
type who struct{ floor bool }

type whoKey struct{}

func observed(ctx context.Context, w *who) context.Context {
	return context.WithValue(ctx, whoKey{}, w)
}

// event is one report.
type event struct {
	who *who
	rywpgx.Event
}

func (e event) String() string {
	s := e.Outcome.String()
	if e.Placed() {
		s += " at " + e.Sample.Position.String()
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// hooks admit everything and write down what they are told. With all set, what is
// done with a context that nobody is in is observed, too.
type hooks struct {
	classifier *sqlread.Classifier
	all        *who
	refuse     error

	mu       sync.Mutex // protects what follows
	events   []event
	admitted int
}

func newHooks() *hooks {
	c, err := sqlread.New(sqlread.Rules{})
	if err != nil {
		panic(err)
	}
	return &hooks{classifier: c}
}

func (h *hooks) Admit(ctx context.Context, conn *pgx.Conn) (*watcher.Probe, error) {
	if h.refuse != nil {
		return nil, h.refuse
	}
	h.mu.Lock()
	h.admitted++
	h.mu.Unlock()
	p := watcher.NewProbe(conn)
	_, err := p.Take(ctx)
	return p, err
}

func (h *hooks) Admitted(*pgx.Conn) bool { return true }

func (h *hooks) Pure(sql string) bool { return h.classifier.Statement(sql).Pure }

func (h *hooks) Observer(ctx context.Context) rywpgx.Observer {
	w, _ := ctx.Value(whoKey{}).(*who)
	if w == nil {
		w = h.all
	}
	if w == nil {
		return nil
	}
	return observer{h, w}
}

type observer struct {
	h *hooks
	w *who
}

func (o observer) Floor() bool { return o.w.floor }

func (o observer) Report(e rywpgx.Event) {
	o.h.mu.Lock()
	defer o.h.mu.Unlock()
	o.h.events = append(o.h.events, event{o.w, e})
}

// take returns the events so far and forgets them.
func (h *hooks) take() []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.events
	h.events = nil
	return e
}

// settings says how a pool is opened.
type settings struct {
	server   *rywtest.Server // the primary when nil
	dsn      string          // instead of the server's
	params   string          // appended to the DSN
	simple   bool
	prepare  bool
	implicit bool // GORM's default transactions
	options  []stdlib.OptionOpenDB
	wire     *wire
	conns    int
	thorough bool // see TestNothingElseDiffers
}

func (s settings) config() postgres.Config {
	if s.server == nil {
		s.server = cluster.Primary()
	}
	if s.dsn == "" {
		s.dsn = s.server.DSN()
	}
	if s.params != "" {
		s.dsn += "&" + s.params
	}
	options := s.options
	if s.wire != nil {
		options = append(options[:len(options):len(options)], stdlib.OptionBeforeConnect(s.wire.tap))
	}
	return postgres.Config{DSN: s.dsn, PreferSimpleProtocol: s.simple, OptionOpenDB: options}
}

func (s settings) open(t testing.TB, d gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d, &gorm.Config{
		Logger: logger.Discard, PrepareStmt: s.prepare, SkipDefaultTransaction: !s.implicit,
	})
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	if s.conns > 0 {
		pool.SetMaxOpenConns(s.conns)
	}
	t.Cleanup(func() { must(t, pool.Close()) })
	return db
}

// plain opens a pool as applications do without this library.
func (s settings) plain(t testing.TB) *gorm.DB {
	t.Helper()
	return s.open(t, postgres.New(s.config()))
}

// ours opens a pool that is bound to h; nil leaves it unbound.
func (s settings) ours(t testing.TB, h *hooks) *gorm.DB {
	t.Helper()
	db := s.open(t, rywpgx.New(s.config()))
	if h != nil {
		must(t, connector(t, db).Bind(h, 0))
	}
	return db
}

func connector(t testing.TB, db *gorm.DB) *rywpgx.Connector {
	t.Helper()
	c, ok := rywpgx.Of(pool(t, db))
	if !ok {
		t.Fatal("pool is not one of a connector")
	}
	return c
}

func pool(t testing.TB, db *gorm.DB) *sql.DB {
	t.Helper()
	p, err := db.DB()
	must(t, err)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// only fails unless there is exactly one event, with that outcome.
func only(t testing.TB, events []event, want rywpgx.Outcome) event {
	t.Helper()
	if len(events) != 1 || events[0].Outcome != want {
		t.Fatalf("events: have %v, want one that is %s", events, want)
	}
	return events[0]
}

// placed fails unless the event has a position that is the server's now: nothing
// else writes.
func placed(t testing.TB, e event) token.Position {
	t.Helper()
	if !e.Placed() {
		t.Fatalf("event has no position: %v", e)
	}
	return e.Sample.Position
}

// position is where the primary is.
func position(t testing.TB) token.Position {
	t.Helper()
	lsn, err := cluster.Primary().Position(t.Context())
	must(t, err)
	return token.Position{Timeline: 1, LSN: token.LSN(lsn)}
}

var tables int

// table makes an empty table and returns its name.
func table(t testing.TB) string {
	t.Helper()
	tables++
	name := fmt.Sprintf("%s_%d", strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, t.Name()[:min(20, len(t.Name()))])), tables)
	conn, err := cluster.Primary().Conn(t.Context())
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "create table "+name+" (id bigserial primary key, v int unique, t text)")
	must(t, err)
	must(t, cluster.WaitReplicated(t.Context()))
	return name
}
