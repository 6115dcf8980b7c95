package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/internal/adminpage"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/watcher"
	"gorm.io/gorm"
)

// Errors of Initialize, which db.Use returns.
var (
	// ErrClosed is returned for a plugin that was closed.
	ErrClosed = errors.New("gorm-ryw: plugin is closed")
	// ErrInUse is returned for a plugin that another *gorm.DB uses already.
	ErrInUse = errors.New("gorm-ryw: plugin is in use by another *gorm.DB")
)

// Plugin is the GORM plugin. Make it with New, install it with db.Use, end it
// with Close. One Plugin serves one *gorm.DB. Safe for concurrent use.
type Plugin struct {
	cfg           Config
	router        *policy.Router
	policy        *policy.Policy
	invalidConfig error
	onlookers     onlookers
	turns         rotator

	tuneMu sync.Mutex // protects tuned
	tuned  Tuning     // what is in force

	mu       sync.Mutex // protects what follows
	db       *gorm.DB   // nil until initialized
	layer    *callbacks.Layer
	reporter *reporter
	home     *watcher.Group
	groups   []*watcher.Group
	opened   []*sql.DB // pools that Close closes
	bound    []func()  // what undoes each bind
	seen     [][]gorm.ConnPool
	// foreign holds pools that were met in statements and are not dbresolver's.
	foreign map[*sql.DB]struct{}
	page    *adminpage.Page // nil until Handler is called
	closed  bool
}

var _ gorm.Plugin = (*Plugin)(nil)

// New returns a plugin. Nothing runs until db.Use, which also reports what is
// wrong with the Config.
func New(cfg Config) *Plugin {
	p := &Plugin{cfg: cfg.withDefaults(), foreign: map[*sql.DB]struct{}{}}
	p.invalidConfig = p.cfg.validate()
	p.router = policy.NewRouter(p.cfg.settings())
	p.tuned = p.cfg.tuning()
	p.policy = p.router.Policy(p.seePools)
	return p
}

// Name implements gorm.Plugin.
func (p *Plugin) Name() string { return scopes.PluginName }

// Policy returns the policy to register a dbresolver of your own with. Without
// the plugin installed on the same *gorm.DB it balances over the replicas and
// promises nothing.
func (p *Plugin) Policy() *policy.Policy { return p.policy }

// Initialize implements gorm.Plugin; db.Use calls it. A failed call leaves db as
// it was and may be repeated. dbresolver calls it again for each pool it opens
// once the plugin is installed, which installs nothing a second time.
func (p *Plugin) Initialize(db *gorm.DB) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.invalidConfig != nil:
		return p.invalidConfig
	case p.db != nil && db.Plugins[scopes.PluginName] == gorm.Plugin(p):
		return p.layer.Attach(p.db)
	case p.db != nil:
		return ErrInUse
	}
	if err := p.install(db); err != nil {
		_ = p.shutDown() // nothing of it was used
		for _, unbind := range p.bound {
			unbind()
		}
		p.groups, p.seen, p.bound = nil, nil, nil
		p.router.Pools.Clear()
		if errors.Is(err, ErrConfig) { // which says whose it is
			return err
		}
		return fmt.Errorf("gorm-ryw: %w", err)
	}
	p.db = db
	p.startRotator()
	if m := p.Tuning().Mode; m != Normal {
		p.announce(m)
	}
	return nil
}

func (p *Plugin) install(db *gorm.DB) error {
	classifier, err := p.cfg.classifier()
	if err != nil {
		return err
	}
	pool, err := poolOf(db)
	if err != nil {
		return err
	}
	primary, err := sourceOf(db.Dialector, pool)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	p.reporter = newReporter(p.cfg.Logger)
	p.home = watcher.NewGroup(p.watching(), primary.name, primary.dial)
	primary.named(p.home.Primary)
	p.groups = []*watcher.Group{p.home}
	p.layer = callbacks.New(callbacks.Config{
		Router: p.router, Classifier: classifier,
		CaptureTimeout: p.cfg.CaptureTimeout, LazyCapture: p.cfg.LazyCapture,
		Adopt: p.adopt, Opened: p.openedByResolver, OnRead: &p.onlookers.hook, Tell: p.reporter.tell,
	}, p.home)
	p.layer.UseResolver(p.policy)
	p.router.Pools.AddPrimary(pool, p.home, p.bind(driverOf(pool), p.layer.PrimaryHooks(p.home)))
	if err := p.openReplicas(db); err != nil {
		return err
	}
	if err := p.layer.Register(db); err != nil {
		return err
	}
	wrapped, _, _ := p.layer.Wrap(db.ConnPool)
	db.ConnPool = wrapped
	db.Statement.ConnPool = wrapped
	return p.layer.Attach(db)
}

// poolOf returns the *sql.DB that db was opened with.
func poolOf(db *gorm.DB) (*sql.DB, error) {
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("pool is %T: %w", db.ConnPool, err)
	}
	return pool, nil
}

// Close stops everything the plugin started, waits for it, and closes the pools
// of Config.Replicas. The primary's pool and those of an existing dbresolver stay
// open. From then on every read goes to the primary and writes leave marks.
// Idempotent.
func (p *Plugin) Close() error {
	p.closePage()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopRotator()
	return p.shutDown()
}

func (p *Plugin) shutDown() error {
	if p.reporter != nil {
		p.reporter.close() // first: that the others end is no news
	}
	if p.layer != nil {
		p.layer.Close()
	}
	for _, g := range p.groups {
		g.Close()
	}
	var errs []error
	for _, pool := range p.opened {
		errs = append(errs, pool.Close())
	}
	p.opened = nil
	return errors.Join(errs...)
}

// Ready waits until every server was asked once, successfully or not, or until
// ctx ends. Nothing needs it: a server that was not asked yet serves no reads.
// It helps tests and programs that want their first read on a replica. Replicas of a
// dbresolver of your own are found with the first statement only. Before db.Use the
// error is ErrNotInstalled.
func (p *Plugin) Ready(ctx context.Context) error {
	p.mu.Lock()
	groups, installed := p.groups, p.db != nil
	p.mu.Unlock()
	if !installed {
		return ErrNotInstalled
	}
	for _, g := range groups {
		replicas := g.Replicas()
		if len(replicas) == 0 {
			continue
		}
		for _, n := range append(replicas, g.Primary) {
			if _, err := n.Sample(ctx); err != nil && ctx.Err() != nil {
				return fmt.Errorf("gorm-ryw: not ready: %w", err)
			}
		}
	}
	return nil
}
