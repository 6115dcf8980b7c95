package pgdial

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
)

func source(t *testing.T, dsn string, opts ...stdlib.OptionOpenDB) *Source {
	t.Helper()
	src, err := FromConfig(&postgres.Config{DSN: dsn, OptionOpenDB: opts})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func yes(context.Context, *pgx.Conn) error { return nil }

func stays(*pgx.Conn) bool { return true }

func exec(t *testing.T, db *sql.DB) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := db.ExecContext(ctx, "set x to 1")
	return err
}

func TestNameHasNoCredentials(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:secret@db1.example:6432/app":                  "db1.example:6432",
		"host=::1 port=5432 user=me password=secret":                 "[::1]:5432",
		"host=/var/run/postgresql port=5433 user=me password=secret": "/var/run/postgresql:5433",
	} {
		if have := source(t, dsn).Name(); have != want {
			t.Errorf("%s: have %s, want %s", dsn, have, want)
		}
	}
}

func TestErrorsHaveNoPassword(t *testing.T) {
	_, err := FromConfig(&postgres.Config{DSN: "postgres://me:secret@db1:notaport/app"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("have %v, want an error without the password", err)
	}
}

func TestDialectorsWithoutDSN(t *testing.T) {
	db := sql.OpenDB(stdlib.GetConnector(pgx.ConnConfig{}))
	defer db.Close()
	for name, c := range map[string]*postgres.Config{
		"open pool":    {Conn: db},
		"other driver": {DriverName: "cloudsql", DSN: "host=h"},
	} {
		if _, err := FromConfig(c); !errors.Is(err, ErrNoDSN) {
			t.Errorf("%s: have %v, want ErrNoDSN", name, err)
		}
	}
}

func TestSimpleProtocolAndTimeZoneAreAsInTheDialector(t *testing.T) {
	cfg, _, err := Parse(&postgres.Config{DSN: "host=h TimeZone=Europe/Berlin user=u", PreferSimpleProtocol: true})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol || cfg.RuntimeParams["timezone"] != "Europe/Berlin" {
		t.Errorf("have mode %v, time zone %q", cfg.DefaultQueryExecMode, cfg.RuntimeParams["timezone"])
	}
	for dsn, want := range map[string]string{
		"host=h timezone=UTC user=u": "UTC", "postgres://h/d?TimeZone=Asia/Tokyo&x=1": "Asia/Tokyo", "host=h time_zone=UTC": "UTC", "host=h": "",
	} {
		if have, ok := timeZone(dsn); have != want || ok != (want != "") {
			t.Errorf("%s: have %q, %v, want %q", dsn, have, ok, want)
		}
	}
}

func TestTimestampsScanInTheZone(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	conn, err := source(t, s.DSN()+" TimeZone=Asia/Tokyo").Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	typ, _ := conn.TypeMap().TypeForOID(pgtype.TimestampOID)
	if codec, ok := typ.Codec.(*pgtype.TimestampCodec); !ok || codec.ScanLocation.String() != "Asia/Tokyo" {
		t.Errorf("have %T", typ.Codec)
	}
	if _, err := source(t, s.DSN()+" TimeZone=Nowhere/City").Dial(context.Background()); err == nil {
		t.Error("unknown time zone: want an error")
	}
}

func TestOpenDBDoesNotConnect(t *testing.T) {
	leakcheck.Check(t)
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	db := source(t, s.DSN()).OpenDB(yes, stays)
	if err := db.Close(); err != nil || s.Dials() != 0 {
		t.Errorf("have %d connections, %v", s.Dials(), err)
	}
}

func TestPoolChecksEachNewConnection(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	refused := errors.New("refused")
	checks, answer := 0, refused
	db := source(t, s.DSN()).OpenDB(func(_ context.Context, c *pgx.Conn) error {
		checks++
		if c.PgConn().PID() == 0 {
			t.Error("connection is not open")
		}
		return answer
	}, stays)
	defer db.Close()
	if err := exec(t, db); !errors.Is(err, refused) {
		t.Errorf("have %v, want the check's error", err)
	}
	s.WaitConns(0) // the refused one was closed
	answer = nil
	for range 3 {
		if err := exec(t, db); err != nil {
			t.Error(err)
		}
	}
	if checks != 2 || s.Dials() != 2 {
		t.Errorf("have %d checks of %d connections, want 2 of 2", checks, s.Dials())
	}
}

// A connection that may not be used again is replaced before anything is sent.
func TestPoolAsksBeforeAConnectionIsUsedAgain(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	var checked, old *pgx.Conn
	reset := 0
	db := source(t, s.DSN(), stdlib.OptionResetSession(func(context.Context, *pgx.Conn) error { reset++; return nil })).OpenDB(
		func(_ context.Context, c *pgx.Conn) error { checked = c; return nil },
		func(c *pgx.Conn) bool { return c != old })
	defer db.Close()
	for range 2 {
		if err := exec(t, db); err != nil {
			t.Fatal(err)
		}
	}
	if s.Dials() != 1 || reset != 1 {
		t.Errorf("have %d connections, %d resets by the application's own hook, want 1 and 1", s.Dials(), reset)
	}
	old = checked
	if err := exec(t, db); err != nil {
		t.Errorf("with a new connection: %v", err)
	}
	if checked == old || s.Dials() != 2 {
		t.Errorf("have %d connections, want a second one, checked", s.Dials())
	}
	s.WaitConns(1)
}

func TestFromPool(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	db := source(t, s.DSN()).OpenDB(yes, stays)
	defer db.Close()
	src, err := FromPool(context.Background(), db)
	if err != nil || src.Name() != s.Addr() {
		t.Fatalf("have %v, %v, want %s", src, err, s.Addr())
	}
	conn, err := src.Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if conn.Config().User != "u" || conn.Config().Password != "secret" {
		t.Error("credentials are not the pool's")
	}
	s.Refuse(true)
	s.Drop()
	if _, err := FromPool(context.Background(), db); err == nil {
		t.Error("server is down: want an error")
	}
}

func TestFromPoolOfAnotherDriver(t *testing.T) {
	db := sql.OpenDB(foreign{})
	defer db.Close()
	if _, err := FromPool(context.Background(), db); err == nil || !strings.Contains(err.Error(), "want pgx's") {
		t.Errorf("have %v", err)
	}
}

// What is given up on one of our own connections must not leave pgx dialling.
func TestDialledConnectionsAreNotCancelled(t *testing.T) {
	leakcheck.Check(t)
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	cfg, opts, err := Parse(&postgres.Config{DSN: s.DSN()})
	if err != nil {
		t.Fatal(err)
	}
	dials := 0
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return dial(ctx, network, addr)
	}
	conn, err := New(cfg, opts...).Dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.PgConn().CancelRequest(context.Background()); !errors.Is(err, errNoCancel) || dials != 1 {
		t.Errorf("have %v after %d dials, want errNoCancel after 1", err, dials)
	}
	if err := conn.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// As the driver does by itself: after a second, idle connections are tried.
func TestIdleConnectionsArePinged(t *testing.T) {
	for idle, want := range map[time.Duration]bool{time.Second: false, time.Second + 1: true} {
		if have := Still(stays).orClose(context.Background(), stdlib.ShouldPingParams{IdleDuration: idle}); have != want {
			t.Errorf("idle for %s: have ping %v, want %v", idle, have, want)
		}
	}
}
