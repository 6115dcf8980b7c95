package rywplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/leakcheck"
	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

func mustParse(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	cfg, err := pgx.ParseConfig("host=127.0.0.1 port=1 user=u")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// otherDialector is one of another database.
type otherDialector struct{ gorm.Dialector }

func TestNameIsTheScopes(t *testing.T) {
	if have := New(Config{}).Name(); have != "gorm-ryw" {
		t.Errorf("have %q", have)
	}
}

// dbresolver initialises the plugins of a handle again for each pool it opens.
func TestInitializeAgain(t *testing.T) {
	db := open(t, fakepg.New(t, fakepg.PrimaryAt(1000)))
	p := use(t, db, Config{})
	pool := db.ConnPool
	if err := p.Initialize(db); err != nil {
		t.Errorf("have %v", err)
	}
	if db.ConnPool != pool {
		t.Error("the pool was wrapped a second time")
	}
	if err := db.Use(p); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("Use again: have %v, want GORM's ErrRegistered", err)
	}
	if err := db.Use(New(Config{})); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("a second plugin: have %v, want GORM's ErrRegistered", err)
	}
}

func TestOnePluginServesOneHandle(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	p := use(t, open(t, s), Config{})
	other := open(t, s)
	if err := other.Use(p); !errors.Is(err, ErrInUse) {
		t.Errorf("have %v, want ErrInUse", err)
	}
	if other.Callback().Query().Get("gorm-ryw:route") != nil {
		t.Error("the other handle was changed")
	}
}

func TestAfterClose(t *testing.T) {
	s := fakepg.New(t, fakepg.PrimaryAt(1000))
	p := New(Config{})
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := open(t, s).Use(p); !errors.Is(err, ErrClosed) {
		t.Errorf("have %v, want ErrClosed", err)
	}
}

func TestCloseJoinsEverything(t *testing.T) {
	leakcheck.Check(t, poolsOwn...)
	primary, r1, r2 := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900)), fakepg.New(t, fakepg.StandbyAt(3, 900))
	db := open(t, primary)
	p := use(t, db, Config{Replicas: dialectors(r1, r2)})
	ready(t, p)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range []*fakepg.Server{r1, r2} {
		s.WaitConns(0)
	}
	primary.WaitConns(1) // the application's own
	for _, n := range p.Status().Nodes {
		if n.Healthy || n.Proven || !strings.Contains(n.Reason, "closed") {
			t.Errorf("have %+v", n)
		}
	}
}

func ready(t *testing.T, p *Plugin) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// Opening connects to no replica: one that is down keeps nobody from starting.
func TestReplicaThatIsDownAtStart(t *testing.T) {
	primary, down := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	down.Refuse(true)
	p := use(t, open(t, primary), Config{Replicas: dialectors(down)})
	ready(t, p)
	n := p.Status().Nodes[1]
	if n.Healthy || n.Proven || n.Name != down.Addr() || !strings.Contains(n.Reason, "57P03") || strings.Contains(n.Reason, "secret") {
		t.Errorf("have %+v", n)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	primary, slow := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	hold := slow.Hold()
	defer hold.Release()
	p := use(t, open(t, primary), Config{Replicas: dialectors(slow), ProbeTimeout: time.Minute})
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("no time")
	cancel(cause)
	if err := p.Ready(ctx); !errors.Is(err, cause) {
		t.Errorf("have %v, want %v", err, cause)
	}
}

func TestReplicasBesideDBResolver(t *testing.T) {
	primary, replica := fakepg.New(t, fakepg.PrimaryAt(1000)), fakepg.New(t, fakepg.StandbyAt(2, 900))
	db := open(t, primary)
	if err := db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.Open(replica.DSN())}})); err != nil {
		t.Fatal(err)
	}
	p := New(Config{Replicas: dialectors(replica)})
	defer p.Close()
	if err := db.Use(p); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "Replicas: dbresolver is registered already") {
		t.Errorf("have %v", err)
	}
}

func TestPrimaryOfAnotherDriver(t *testing.T) {
	db, err := gorm.Open(nil, &gorm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{})
	defer p.Close()
	if err := db.Use(p); err == nil {
		t.Error("a handle without a pool: want an error")
	}
	// What failed may be repeated.
	if err := open(t, fakepg.New(t, fakepg.PrimaryAt(1000))).Use(p); err != nil {
		t.Errorf("on a handle that has one: %v", err)
	}
}

func TestReadyBeforeUse(t *testing.T) {
	if err := New(Config{}).Ready(t.Context()); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("have %v, want ErrNotInstalled", err)
	}
}
