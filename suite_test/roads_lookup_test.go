package suite_test

import (
	"database/sql"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

// lookupRoads are the reads that GORM makes in order to write, and those on
// connections that are not to be exchanged.
var lookupRoads = map[string]way{
	"`FirstOrCreate`, its lookup": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Where("id = ?", r.id).FirstOrCreate(&t).Error, t)
	}},
	"`FirstOrCreate` with conditions in a struct, its lookup": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Where(Tree{ID: r.id}).Attrs(Tree{V: 9}).FirstOrCreate(&t).Error, t)
	}},
	"`FirstOrInit`, its lookup": {read: func(r *run) ([]seenV, error) {
		var t Tree
		return answersOf(r.db.Where("id = ?", r.id).FirstOrInit(&t).Error, t)
	}},
	"`Migrator().HasTable`":    migrator(func(m gorm.Migrator, table string) (bool, error) { return m.HasTable(table), nil }),
	"`Migrator().HasColumn`":   migrator(func(m gorm.Migrator, table string) (bool, error) { return m.HasColumn(table, "a"), nil }),
	"`Migrator().HasIndex`":    migrator(func(m gorm.Migrator, table string) (bool, error) { return m.HasIndex(table, table+"_a"), nil }),
	"`Migrator().ColumnTypes`": migrator(columnTypes),
	"`Migrator().GetIndexes`":  migrator(indexes),
	"`Migrator().GetTables`":   migrator(tables),
	"`Connection`, read":       {read: onConnection},
	"a pool of your own in `Statement.ConnPool`": {read: func(r *run) ([]seenV, error) {
		var t Tree
		tx := r.app.WithContext(r.ctx).Session(&gorm.Session{Initialized: true})
		for _, h := range r.scopes {
			tx = tx.Scopes(h)
		}
		tx.Statement.ConnPool = ownPool()
		return answersOf(tx.First(&t, "id = ? and current_setting('application_name') = 'own'", r.id).Error, t)
	}},
}

// migrator asks for something of a table that only the primary has yet.
func migrator(has func(m gorm.Migrator, table string) (bool, error)) way {
	return way{read: func(r *run) ([]seenV, error) {
		var t Tree
		if err := r.db.Clauses(dbresolver.Write).First(&t, r.id).Error; err != nil {
			return nil, err
		}
		table := fmt.Sprintf("migrated_%d", newID.Add(1))
		primarySQL(r.ctx, fmt.Sprintf("create table %s (id bigint primary key, a text); create index %[1]s_a on %[1]s (a)", table))
		found, err := has(r.db.Migrator(), table)
		if !found {
			return []seenV{{1, true}}, err
		}
		return []seenV{{t.V, false}}, err
	}}
}

func columnTypes(m gorm.Migrator, table string) (bool, error) {
	types, err := m.ColumnTypes(table)
	if sqlState(err) == "42P01" {
		return false, nil
	}
	return len(types) == 2, err
}

func indexes(m gorm.Migrator, table string) (bool, error) {
	found, err := m.GetIndexes(table)
	return len(found) == 1, err // the primary key's are not among them
}

func tables(m gorm.Migrator, table string) (bool, error) {
	all, err := m.GetTables()
	for _, t := range all {
		if t == table {
			return true, err
		}
	}
	return false, err
}

// onConnection reads on one connection, twice.
func onConnection(r *run) (answers []seenV, err error) {
	err = r.db.Connection(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{})
		var before, after int64
		var t, u Tree
		err := errors.Join(
			tx.Exec("set application_name = 'road'").Error,
			tx.Raw("select pg_backend_pid()").Scan(&before).Error,
			tx.First(&t, "id = ? and current_setting('application_name') = 'road'", r.id).Error,
			tx.Model(&Tree{}).Find(&u, r.id).Error,
			tx.Raw("select pg_backend_pid()").Scan(&after).Error,
			tx.Exec("reset application_name").Error,
		)
		if before != after {
			err = errors.Join(err, fmt.Errorf("on backends %d and %d", before, after))
		}
		answers, _ = answersOf(nil, t, u)
		return err
	})
	return answers, err
}

// ownPool opens a pool that nobody knows.
func ownPool() *sql.DB {
	GinkgoHelper()
	cfg, err := pgx.ParseConfig(cluster.Primary().DSN())
	Expect(err).NotTo(HaveOccurred())
	cfg.RuntimeParams["application_name"] = "own"
	pool := stdlib.OpenDB(*cfg)
	DeferCleanup(pool.Close)
	return pool
}
