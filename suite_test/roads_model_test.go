package suite_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"gorm.io/gorm"
)

// The roads read views in which every row tells who answered, so that any call
// proves its route without changing what it selects.

// Seen is who answered, taken from the row.
type Seen struct {
	Replica bool   `gorm:"->"`
	Server  string `gorm:"->"`
}

// Tree is an item with twigs, which have leaves; V is the version of each.
type Tree struct {
	ID    int64 `gorm:"primaryKey"`
	V     int64
	Code  int64  `gorm:"->"`
	Twigs []Twig `gorm:"foreignKey:ItemID"`
	Codes []Code `gorm:"foreignKey:ItemID"`
	Seen
}

// Twig belongs to a tree.
type Twig struct {
	ID     int64 `gorm:"primaryKey"`
	ItemID int64
	V      int64
	Tree   *Tree  `gorm:"foreignKey:ItemID"`
	Leaves []Leaf `gorm:"foreignKey:TwigID"`
	Seen
}

// Leaf belongs to a twig.
type Leaf struct {
	ID     int64 `gorm:"primaryKey"`
	TwigID int64
	V      int64
	Seen
}

// Code is one of as many rows as an answer's code says, for calls that return
// nothing but a count.
type Code struct {
	ItemID int64
	N      int64
}

func (Tree) TableName() string { return "seen_items" }
func (Twig) TableName() string { return "seen_twigs" }
func (Leaf) TableName() string { return "seen_leaves" }
func (Code) TableName() string { return "seen_codes" }

// Note is deleted softly, Pledge is refused by a constraint that is checked at
// the commit, Tag is many to many.
type Note struct {
	ID        int64 `gorm:"primaryKey"`
	V         int64
	DeletedAt gorm.DeletedAt
}

// Pledge must have an item when its transaction commits.
type Pledge struct {
	ID     int64 `gorm:"primaryKey"`
	ItemID int64
}

// Doomed loses its connection when its transaction commits.
type Doomed struct {
	ID int64 `gorm:"primaryKey"`
}

// TableName implements schema.Tabler.
func (Doomed) TableName() string { return "doomed" }

// Tagged is an item with tags.
type Tagged struct {
	ID   int64 `gorm:"primaryKey"`
	Tags []Tag `gorm:"many2many:item_tags;joinForeignKey:ItemID;joinReferences:TagID"`
}

// Tag is one of many of many.
type Tag struct {
	ID   int64 `gorm:"primaryKey"`
	Name string
}

func (Tagged) TableName() string { return "items" }

// roadDDL is what the roads need beside items and parts.
const roadDDL = `
create table twigs (id bigint primary key, item_id bigint, v bigint);
create table leaves (id bigint primary key, twig_id bigint, v bigint);
create table notes (id bigint primary key, v bigint, deleted_at timestamptz);
create table tags (id bigint primary key, name text);
create table item_tags (item_id bigint, tag_id bigint, primary key (item_id, tag_id));
create table pledges (id bigint primary key, item_id bigint references items deferrable initially deferred);
create table marked (id bigint primary key, item_id bigint);
create sequence road_seq;
create view seen as select pg_is_in_recovery() as replica, host(inet_server_addr()) || ':' || inet_server_port() as server;
create view seen_items as select i.*, (2 - replica::int) * 1000 + v as code, replica, server from items i, seen;
create view seen_twigs as select t.*, replica, server from twigs t, seen;
create view seen_leaves as select l.*, replica, server from leaves l, seen;
create view seen_codes as select i.id as item_id, n from items i, seen, generate_series(1, ((2 - replica::int) * 1000 + v)::int) n;
create function plant(item bigint) returns void language sql as $$
	insert into items (id, v) values (item, 1);
	insert into twigs (id, item_id, v) values (item, item, 1);
	insert into leaves (id, twig_id, v) values (item, item, 1);
	insert into notes (id, v) values (item, 1);
	insert into tags (id, name) values (item, 'a') $$;
create function grow(item bigint) returns void language sql as $$
	update items set v = v + 1 where id = item;
	update twigs set v = v + 1 where item_id = item;
	update leaves set v = v + 1 where twig_id = item $$;
create function hang_up() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
create table doomed (id bigint primary key);
create constraint trigger hang_up after insert on doomed deferrable initially deferred for each row execute function hang_up();
create function harmless(n bigint) returns bigint language sql stable as $$ select n $$`

var roadTables sync.Once

// makeRoadTables runs roadDDL on the shared cluster, once.
func makeRoadTables(ctx context.Context) {
	GinkgoHelper()
	roadTables.Do(func() {
		primarySQL(ctx, roadDDL)
		Expect(cluster.WaitReplicated(ctx)).To(Succeed())
	})
}

// primarySQL runs SQL on the primary, past the plugin.
func primarySQL(ctx context.Context, sql string, args ...any) {
	GinkgoHelper()
	conn, err := cluster.Primary().Conn(ctx)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql, args...)
	Expect(err).NotTo(HaveOccurred())
}

// plant makes n trees at version 1 everywhere and returns their ids.
func plant(ctx context.Context, n int) []int64 {
	GinkgoHelper()
	makeRoadTables(ctx)
	last := newID.Add(int64(n))
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = last - int64(i)
	}
	primarySQL(ctx, "select plant(id) from unnest($1::bigint[]) id", ids)
	Expect(cluster.WaitReplicated(ctx)).To(Succeed())
	return ids
}

// grow raises the version of a whole tree by one, through GORM.
func grow(db *gorm.DB, id int64) {
	GinkgoHelper()
	Expect(db.Exec("select grow(?)", id).Error).To(Succeed())
}
