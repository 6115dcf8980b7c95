package sqlread

import "testing"

var pureFragments = []string{
	// Select, Order, Group, Having, Table, Joins.
	``, ` `, `/* nothing */`, "-- a line\n", `*`, `id`, `users.*`, `count(*)`, `count(*) as n, max(created_at)`, `DISTINCT status`,
	`distinct(name)`, `id desc`, `lower(name) asc nulls last`, `CASE WHEN id = ? THEN 0 ELSE 1 END, id`,
	`count(*) > ?`, `"users"."name" AS "user__name"`, `users u`, `users as u`, `(?) as u`, `(?) as u, orders o`,
	`generate_series(?, ?) as g(n)`, `unnest(?::int[]) u(id)`, `json_to_recordset(?) as x(a int, b text)`,
	`left join orders o on o.user_id = users.id and o.status = ?`, `LEFT JOIN (?) AS x ON x.id = users.id`,
	`inner join (select 1 as id) x using (id)`, `join (select 1) x on true`, `join lateral (?) x on true`,
	`, lateral jsonb_each(tags) e`, `union all select 1`, `with x as (select 1)`,
	`on (status) id`, `tablesample bernoulli(10)`,

	// Where, with placeholders of GORM.
	`id = ?`, `id = $1`, `id=@id`, `name = @name AND id > @id`, `name like ? or name ilike ?`, `name not ilike 'a'`,
	`id in ?`, `id IN (?)`, `id not in ?`, `(id, name) in ?`, `id between ? and ?`, `id = any(?)`, `id in (@ids)`,
	`deleted_at is null`, `users.key ilike ?`, `users.by ilike ?`, `lower(name) = lower(?)`, `name like ? escape '!'`, `? ilike ?`, `(a || b) ilike ?`,
	`created_at > now() - interval ?`, `created_at at time zone ? > ?`, `tags @> ?`, `tags->>? = ?`, `tags->>'a'=?`, `a <@?`,
	`?`, `? = ?`, `?::int`, `?::numeric(10,2) > ?`, `? , ?`, `- ?`, `coalesce(?, ?)`, `exists (?)`, `not exists (?)`,
	`limit ? offset ?`, `order by ?`, `group by ?`, `values ?`, `row ?`, `date ?`, `lower ?`,
	`name = 'a''?'`, `name = E'\'?'`, `name ~ '^\d+$'`, `name = $$?$$`, `a = '@b'`, `"a?" = ?`,
	`a @@ to_tsquery(?)`, `id = ? -- c` + "\n", `id = ? /* c */`, `name || ?`, `id -? > 0`, `a/?`,
	`(id = ? or (name = ? and not (id > ?)))`, `array[?]`, `tags[?]`, `substring(name from ? for ?) = ?`,
}

var refusedFragments = map[Reason][]string{
	ReasonSeveral: {`id = 1;`, `id; delete from users`, `;`, `1; delete from users`},
	ReasonLock:    {`id = 1 for update`, `for update`, `for share of users`, `id desc for no key update`, `users for update`, `id in (select id from users for key share)`},
	ReasonUnknown: {`id for`, `for`, `with x as`, `with x as (select 1),`, `with ordinality`},
	ReasonInto:    {`* into x`, `id, name into temp x`, `into x`},
	ReasonModifying: {
		`with x as (delete from users returning 1)`, `id in (with x as (update t set a = 1 returning 1) select 1)`,
		`update`, `update ? set`, `insert`, `delete`, `delete ?`, `join x on true update`, `merge ?`,
	},
	ReasonFunction: {
		`nextval('s')`, `id = nextval(?)`, `my_function(id) > ?`, `my_table(?) as x`, `join my_function(?) x on true`, `field(id, ?)`,
		`on (status) my_function(id)`, `on ((status)) my_function (id)`, `rollup(a)`, `lower(name), my_function(?)`, `a @@ my_function('b')`, `join(1)`, `join (?) x on true`,
		`x.nextval(?)`, `?.nextval`, `@a.nextval`, `.nextval`, `(?).nextval`, `?.nextval('s')`, `? nextval('s')`, `@a nextval('s')`, `users u (a)`,
	},
	ReasonPlaceholder: {
		`nextval ?`, `nextval @a`, `nextval@a`, `id = nextval ?`, `?('s')`, `? ('s')`, `@f ('s')`, `@f('s')`, `a @@f('s')`, `a @@to_tsquery('s')`, `x <@f ('s')`,
		`public.nextval ?`, `"nextval" ?`, `ilike ?`, `a, ilike ?`, `is ?`, `a is ?`, `a like ? escape ?`, `on (a) ilike ?`, `tags ? 'a'`, `join ?`,
	},
	ReasonUnterminated: {`id = 1 --`, `id = 1 -- for`, `--`, `/* a`, `id = 'a`, `"a`, `$$a`, `id = 1 /* /* */`},
	ReasonUnbalanced:   {`id = 1)`, `(id = 1`, `) or (1 = 1`, `id = 1) or (1 = 1`, `a[1`, `1]`},
	ReasonCharacter:    {`id = 1 */`, `*/`, `a \ b`, `id = 1or 2`},
	ReasonBackslash:    {`name = 'a\'`, `name = '\' or '`},
	ReasonEncoding:     {"id\x00", "id = '\xff'"},
	ReasonUnicodeName:  {`U&"\0061"`},
	ReasonCatalog:      {`pg_class c`, `pg_catalog.pg_type`, `information_schema.columns`},
	ReasonSession:      {`pg_temp.x`, `"pg_temp_1"."x"`},
}

func TestPureFragments(t *testing.T) {
	c := newClassifier(t, Rules{})
	for _, sql := range pureFragments {
		if v := c.Fragment(sql); !v.Pure {
			t.Errorf("%s\nhave %v, want pure read", sql, v)
		}
	}
}

func TestRefusedFragments(t *testing.T) {
	c := newClassifier(t, Rules{})
	for reason, list := range refusedFragments {
		for _, sql := range list {
			if v := c.Fragment(sql); v.Pure || v.Reason != reason {
				t.Errorf("%s\nhave %v, want %v", sql, v, reason)
			}
		}
	}
}

// A question mark is an operator in a statement, and the same text may be both
// a statement and a fragment.
func TestFragmentIsNotStatement(t *testing.T) {
	c := newClassifier(t, Rules{})
	for range 2 { // the second time from the cache
		if v := c.Statement(`select tags ? 'a' from users`); !v.Pure {
			t.Errorf("statement: have %v, want pure read", v)
		}
		if v := c.Fragment(`select tags ? 'a' from users`); v.Reason != ReasonPlaceholder {
			t.Errorf("fragment: have %v, want %v", v, ReasonPlaceholder)
		}
		if v := c.Statement(`id = 1`); v.Reason != ReasonStatement {
			t.Errorf("statement: have %v, want %v", v, ReasonStatement)
		}
		if v := c.Fragment(`id = 1`); !v.Pure {
			t.Errorf("fragment: have %v, want pure read", v)
		}
	}
}
