package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/internal/routeprobe"
	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"gorm.io/gorm"
)

// routing compares our callback with dbresolver's own, without and with prepared
// statements.
//
// route.fresh is everything of ours between dbresolver's choice and the chosen
// pool: the route callback with the look-up of hint and session, and what happens
// when the statement's text is there: classification of the text, precedence,
// decision, the pool in its prepared form, the count of reads under way, and its
// end. The query carries a hint with a token and its context a session with the
// same; both replicas have replayed it. Not included: sending, and what the
// session learns afterwards (explain.allocs).
//
// dbresolver.resolve is dbresolver's own callback with RandomPolicy, on the same
// statement without hint. route.chain is what a read passes through in all with
// the plugin: dbresolver's callback, which asks our Policy, then ours.
func routing(ctx context.Context, e *env, r *report) error {
	for _, f := range []struct {
		suffix   string
		prepared bool
	}{{"", false}, {".prepared", true}} {
		b, err := openRouteBench(ctx, e, f.prepared)
		if err != nil {
			return err
		}
		if err := errors.Join(b.figures(r, f.suffix), b.close()); err != nil {
			return err
		}
	}
	return nil
}

// routeBench is a statement of an application with the plugin and the same of one
// on plain dbresolver.
type routeBench struct {
	apps        []*app
	ours, plain *statement
}

func openRouteBench(ctx context.Context, e *env, prepared bool) (_ *routeBench, err error) {
	b := &routeBench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	gc := gorm.Config{PrepareStmt: prepared}
	with, err := openPlugin(ctx, e.addresses(), gc, rywplugin.Config{})
	if err != nil {
		return nil, err
	}
	b.apps = append(b.apps, with)
	tok, err := with.caughtUp(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := openPlain(e.addresses(), gc)
	if err != nil {
		return nil, err
	}
	b.apps = append(b.apps, plain)
	b.ours = newStatement(session.NewContext(ctx, session.New(tok)), with.Scopes(scopes.ReadYourWrites(tok)))
	b.plain = newStatement(ctx, plain.DB)
	return b, errors.Join(b.ours.check(with), b.plain.db.Error)
}

func (b *routeBench) close() error {
	var errs []error
	for _, a := range b.apps {
		errs = append(errs, a.close())
	}
	return errors.Join(errs...)
}

func (b *routeBench) figures(r *report, suffix string) error {
	contenders := []func() error{b.plain.resolve, b.ours.route, b.ours.chain}
	times, err := alternate(3000, 100, contenders...)
	if err != nil {
		return err
	}
	for i, name := range []string{"dbresolver.resolve", "route.fresh", "route.chain"} {
		n, err := allocations(20000, contenders[i])
		if err != nil {
			return err
		}
		r.figure(name+suffix+".ns", median(times[i]), "ns")
		r.figure(name+suffix+".allocs", n, "allocations")
	}
	r.figure("route.ratio_vs_dbresolver"+suffix, ratio(times[1], times[0]), "ratio")
	explain, err := b.explainAllocs(20000)
	if err != nil {
		return err
	}
	r.figure("explain"+suffix+".allocs", explain, "allocations")
	return nil
}

// explainAllocs is what remains once the query was answered: the record that
// Explain and Token are told from.
func (b *routeBench) explainAllocs(calls int) (float64, error) {
	route, err := allocations(calls, b.ours.route)
	if err != nil {
		return 0, err
	}
	all, err := allocations(calls, b.ours.routeAndObserve)
	return all - route, err
}

// statement is a First by primary key as GORM has it when its callbacks begin,
// and the text that it sends. Its callbacks can be run over it again and again.
type statement struct {
	db   *gorm.DB
	ctx  context.Context
	text string

	base   gorm.ConnPool // what GORM begins with
	chosen gorm.ConnPool // what dbresolver made of it

	dbresolver, ryw, observe func(*gorm.DB)
}

var sink gorm.ConnPool // keeps the compiler from leaving out what is measured

func newStatement(ctx context.Context, db *gorm.DB) *statement {
	var row item
	tx := db.WithContext(ctx).Session(&gorm.Session{DryRun: true}).First(&row, seeded.ID)
	s := &statement{db: tx, ctx: ctx, text: tx.Statement.SQL.String(), base: db.ConnPool}
	tx.DryRun = false
	tx.Statement.SQL.Reset()
	q := db.Callback().Query()
	s.dbresolver, s.ryw, s.observe = q.Get("gorm:db_resolver"), q.Get("gorm-ryw:route"), q.Get("gorm-ryw:observe")
	_ = s.resolve()
	s.chosen = tx.Statement.ConnPool
	return s
}

// resolve is dbresolver's callback.
func (s *statement) resolve() error {
	s.db.Statement.ConnPool = s.base
	s.dbresolver(s.db)
	sink = s.db.Statement.ConnPool
	return nil
}

// route is our part, from dbresolver's choice to the chosen pool.
func (s *statement) route() error {
	s.db.Statement.ConnPool = s.chosen
	s.decide().Forget()
	return nil
}

func (s *statement) chain() error {
	s.db.Statement.ConnPool = s.base
	s.dbresolver(s.db)
	s.decide().Forget()
	return nil
}

func (s *statement) decide() routeprobe.Call {
	s.ryw(s.db)
	c := s.db.Statement.ConnPool.(routeprobe.Call)
	sink = c.Choose(s.db.Statement.Context, s.text)
	return c
}

// routeAndObserve is route with what follows the answer.
func (s *statement) routeAndObserve() error {
	s.db.Statement.ConnPool, s.db.Statement.Context = s.chosen, s.ctx
	s.decide()
	s.observe(s.db)
	s.db.Statement.ConnPool, s.db.Statement.Context = s.chosen, s.ctx
	return nil
}

// check makes sure that what is measured is what it is said to be: a choice
// between both replicas.
func (s *statement) check(a *app) error {
	if s.db.Error != nil {
		return s.db.Error
	}
	seen := map[gorm.ConnPool]bool{}
	for range 200 {
		if err := s.route(); err != nil {
			return err
		}
		p := sink
		if prepared, ok := p.(*gorm.PreparedStmtDB); ok {
			p = prepared.ConnPool
		}
		seen[p] = true
	}
	replicas := 0
	err := a.pools(func(p *sql.DB) error {
		if seen[p] {
			replicas++
		}
		return nil
	})
	if err == nil && (len(seen) != 2 || replicas != 2) {
		err = fmt.Errorf("routed to %d pools, %d of them replicas', want both replicas and nothing else", len(seen), replicas)
	}
	return err
}
