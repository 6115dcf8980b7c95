package suite_test

import (
	"context"
	"errors"
	"log/slog"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

const badToken = "no token"

// oddRoads are reads that are not like the others.
var oddRoads = map[string]way{
	"`Clauses(dbresolver.Read)`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Clauses(dbresolver.Read).First(&t, r.id).Error, t)
	}},
	"`Clauses(dbresolver.Read)` on `Raw`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return decoded(r.db.Clauses(dbresolver.Read).Raw("select code from seen_items where id = ?", r.id).Scan(&code).Error, code)
	}},
	"`Clauses(dbresolver.Use(…))`": {
		open: openNamed, plain: plainNamed,
		read: func(r *run) ([]seenV, error) {
			var t Tree
			return answersOf(r.db.Clauses(dbresolver.Use("archive")).First(&t, r.id).Error, t)
		},
	},
	"a hint on a condition group in `Where`": {read: func(r *run) ([]seenV, error) {
		group := r.app.Where("id = ?", r.id)
		for _, h := range r.scopes {
			group = group.Scopes(h)
		}
		var t Tree
		db := r.app.WithContext(r.ctx)
		db.Statement.ConnPool = r.db.Statement.ConnPool
		return answersOf(db.Where(group).First(&t).Error, t)
	}},
	"`DryRun`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		db := r.db.Session(&gorm.Session{DryRun: true})
		for _, tx := range []*gorm.DB{
			db.First(&t, r.id), db.Preload("Twigs").Find(&t, r.id),
			db.Create(&Item{ID: r.id}), db.Raw("select 1").Find(&t), db.Exec("select 1"),
		} {
			if tx.Error != nil || tx.Statement.SQL.Len() == 0 {
				return nil, errors.Join(tx.Error, errors.New("no SQL"))
			}
		}
		return nil, nil
	}},
	"`ToSQL`": {read: func(r *run) ([]seenV, error) {
		sql := r.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.First(&Tree{}, r.id) })
		if sql == "" {
			return nil, errors.New("no SQL")
		}
		return nil, nil
	}},
	"a bad token: `First`": {read: func(r *run) ([]seenV, error) {
		return nil, r.db.Scopes(scopes.ReadYourWrites(badToken)).First(&Tree{}, r.id).Error
	}},
	"a bad token: `Raw(…).Scan`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return nil, r.db.Scopes(scopes.ReadYourWrites(badToken)).Raw("select 1").Scan(&code).Error
	}},
	"a bad token: `Row`": {read: func(r *run) ([]seenV, error) {
		var code int64
		return nil, r.db.Scopes(scopes.ReadYourWrites(badToken)).Model(&Tree{}).Select("code").Row().Scan(&code)
	}},
	"a bad token: `Rows`": {read: func(r *run) ([]seenV, error) {
		rows, err := r.db.Scopes(scopes.ReadYourWrites(badToken)).Model(&Tree{}).Rows()
		if rows != nil {
			err = errors.Join(errors.New("rows are not nil"), rows.Close())
		}
		return nil, err
	}},
	"a bad token: `gorm.G[T]`": {read: func(r *run) ([]seenV, error) {
		bad := scopes.ReadYourWrites(badToken).Clause()
		var code int64
		rowErr := gorm.G[Tree](r.db, bad).Select("code").Row(r.ctx).Scan(&code)
		_, err := gorm.G[Tree](r.db, bad).First(r.ctx)
		if rowErr == nil || err == nil {
			return nil, errors.New("no error")
		}
		return nil, errors.Join(rowErr, err)
	}},
	"another query of the session's while its transaction is open": {read: func(r *run) ([]seenV, error) {
		tx := r.app.WithContext(r.ctx).Begin()
		defer tx.Rollback()
		if err := tx.Exec("select 1").Error; err != nil {
			return nil, err
		}
		var t Tree
		return answersOf(r.db.First(&t, r.id).Error, t)
	}},
}

// openWith starts an application beside a dbresolver of its own, whose pools are
// trusted.
func openWith(resolver func(dbresolver.Policy) *dbresolver.DBResolver, opts ...appOption) *app {
	GinkgoHelper()
	cfg := rywplugin.Config{TrustPools: true, Logger: slog.New(slog.DiscardHandler)}
	gcfg := &gorm.Config{}
	for _, o := range opts {
		o(gcfg, &cfg)
	}
	ryw := rywplugin.New(cfg)
	db := openGORM(cluster.Primary(), gcfg)
	Expect(db.Use(resolver(ryw.Policy()))).To(Succeed())
	closeReplicas(db)
	Expect(db.Use(ryw)).To(Succeed())
	DeferCleanup(ryw.Close)
	return &app{DB: db, ryw: ryw}
}

// named is a resolver for everything and one of the name archive, of one replica
// each.
func named(p dbresolver.Policy) *dbresolver.DBResolver {
	ds := dialectors(cluster)
	return dbresolver.Register(dbresolver.Config{Replicas: ds[:1], Policy: p}).
		Register(dbresolver.Config{Replicas: ds[1:], Policy: p}, "archive")
}

func openNamed(ctx context.Context, opts ...appOption) *app {
	GinkgoHelper()
	a := openWith(named, opts...)
	id := plant(ctx, 1)[0]
	readFrom(a.Scopes(scopes.StaleOK()).Session(&gorm.Session{}), id, true)
	readFrom(a.Clauses(dbresolver.Use("archive")).Scopes(scopes.StaleOK()).Session(&gorm.Session{}), id, true)
	return a
}

func plainNamed(...appOption) *gorm.DB {
	GinkgoHelper()
	db := openGORM(cluster.Primary(), &gorm.Config{})
	Expect(db.Use(named(dbresolver.RandomPolicy{}))).To(Succeed())
	closeReplicas(db)
	return db
}
