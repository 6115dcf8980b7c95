package sqlread

import "testing"

// refusedStatements are not pure, by the reason reported.
var refusedStatements = map[Reason][]string{
	ReasonEmpty: {``, ` `, "\n\t", `-- only a comment`, `/* for update */`},

	ReasonStatement: {
		`insert into users values (1)`,
		`update users set name = 'a'`,
		`delete from users`,
		`merge into users u using t on u.id = t.a when matched then delete`,
		`truncate users`,
		`call p()`,
		`do $$ begin perform 1; end $$`,
		`copy users to stdout`,
		`copy (select 1) to stdout`,
		`create table x (a int)`,
		`create table x as select 1`,
		`alter table users add x int`,
		`drop table users`,
		`grant select on users to public`,
		`comment on table users is 'a'`,
		`set search_path = public`,
		`set local work_mem = '1MB'`,
		`reset all`,
		`discard all`,
		`begin`, `start transaction`, `commit`, `rollback`, `savepoint a`, `release a`, `end`, `abort`,
		`prepare p as select 1`,
		`execute p`,
		`deallocate all`,
		`declare c cursor for select 1`,
		`fetch next from c`, `move c`, `close c`,
		`listen a`, `unlisten *`, `notify a, 'b'`,
		`lock table users`,
		`vacuum`, `analyze`, `checkpoint`, `cluster`, `reindex table users`, `refresh materialized view v`, `load 'x'`,
		`security label on table t is 'a'`,
		`import foreign schema s from server x into y`,
		`explain insert into users values (1)`,
		`explain analyze insert into users values (1)`,
		`explain (analyze) update users set name = 'a'`,
		`explain analyze verbose delete from users`,
		`explain create table x as select 1`,
		`explain execute p`,
		`explain declare c cursor for select 1`,
		`explain (analyze) refresh materialized view v`,
		`explain`,
		`explain analyze`,
		`explain show all`,
		`explain explain select 1`,
		`(show all)`,
		`(explain select 1)`,
		`(insert_ into users)`,
		`()`,
		`"select" 1`,
		`selects 1`,
		"\ufeffselect 1",
		`select1`,
		`1`,
		`'select'`,
		`with x as (1) select 1`,
		`with x as (show all) select 1`,
		`with x as (select 1) show all`,
		`with x as (select 1) x`,
		`wait for lsn '0/1'`,
		`;`, `; select 1`,
	},

	ReasonSeveral: {
		`select 1; select 2`,
		`select 1; delete from users`,
		`select 1;;`,
		`select 1; -- a` + "\n;",
		`show all; select 1`,
		`(select 1; select 2)`,
		`explain select 1; drop table users`,
		`select 1 /* a */; /* b */ set role x`,
		`select $$a$$; delete from users -- $$`,
		`select 'a''; '; delete from users`,
		`select "a""; "; delete from users`,
		`select e'\\'; delete from users --'`,
		"select 1 --\n; delete from users",
		"select 1 --\r; delete from users",
		`select 1 /* /* */ */; delete from users`,
	},

	ReasonModifying: {
		`with x as (insert into users values (1) returning id) select * from x`,
		`with x as (update users set name = 'a' returning *) table x`,
		`with x as (delete from users returning id) select 1`,
		`with x as (merge into users u using t on u.id = t.a when matched then delete returning 1) select 1`,
		`WITH x AS ( /* c */ DELETE FROM users) SELECT 1`,
		`with x as materialized (delete from users returning 1) select 1`,
		`with x as not materialized (update only users set name = 'a' returning 1) select 1`,
		`with a as (select 1), x(i) as (update "users" set name = 'a' returning 1) select 1`,
		`with x as (with y as (select 1) delete from users returning 1) select 1`,
		`with x as (with y as (delete from users returning 1) select 1) select 1`,
		`with recursive x as (select 1 a) search depth first by a set o delete from users`,
		`with recursive x as (select 1 a) cycle a set c using p update users set name = 'a'`,
		`with x as (select 1) insert into users select * from x`,
		`with x as (select 1) update users set name = 'a'`,
		`with x as (select 1) delete from users`,
		`with x as (select 1) merge into users u using t on true when matched then delete`,
		`select * from (with x as (delete from users returning 1) select * from x) y`,
		`explain with x as (select 1) delete from users`,
		`explain analyze with x as (delete from users returning 1) select 1`,
		`(insert into users values (1))`,
		`select * from (delete from users returning 1) x`,
		`select (update users set a = 1)`, `select (update only users set a = 1)`, `select (update "users" set a = 1)`,
		`select 1 where update is null`, // a column, but it looks like UPDATE "is"
	},

	ReasonInto: {
		`select 1 into x`,
		`select * into x from users`,
		`select * into temp x from users`,
		`SELECT id INTO TABLE x FROM users`,
		`select 1 union select 2 into x`,
		`with x as (select 1) select * into y from x`,
		`(select 1 into x)`,
		`select 1/**/into/**/x`,
		`explain analyze select 1 into x`,
		`select 1 as into`,
		`select a.into from a`,
		"select 1 -- \ninto x",
		`select'a'into x`,
		`select"a"into x`,
		`select(1)into x`,
		`select $1/**/into x`,
		`select $$a$$into x`,
		`table users into x`,
	},

	ReasonLock: {
		`select * from users for update`,
		`select * from users for update;`,
		`select * from users FOR  UPDATE`,
		`select * from users for update of users`,
		`select * from users for update nowait`,
		`select * from users for update skip locked`,
		`select * from users for no key update`,
		`select * from users for share`,
		`select * from users for key share`,
		`select * from users for/**/update`,
		`select * from users for -- x` + "\n update",
		`select * from users for update limit 1`,
		`select * from users limit 1 for update`,
		`select * from users fetch first 1 row with ties for update`,
		`select * from (select * from users for update) u`,
		`select (select id from users limit 1 for share)`,
		`with x as (select * from users for update) select * from x`,
		`(select * from users for update)`,
		`(select * from users) for update`,
		`select * from users where id in (select id from users for update)`,
		`values (1) for update`,
		`table users for update`,
		`select substring((select name from users for update) from 1)`,
		`select substring('a' from 1 for update)`,
		`explain select * from users for update`,
		`explain analyze select * from users for update`,
		`select * from users where name = 'a'for update`,
		`select * from "users"for update`,
		`select * from users where(true)for update`,
		`select * from users where name = $$a$$for update`,
	},

	ReasonFunction: refusedFunctions,

	ReasonCatalog: {
		`SELECT count(*) FROM INFORMATION_SCHEMA.table_constraints WHERE table_schema = $1`,
		`select column_name from "information_schema".columns`,
		`select count(*) from pg_indexes where schemaname = current_schema()`,
		`select relname from pg_catalog.pg_class`,
		`select a.attname from PG_ATTRIBUTE a`,
		`select 1 where exists (select from "pg_catalog"."pg_constraint")`,
	},

	ReasonSession: {
		`select * from pg_temp.x`,
		`select * from pg_temp_3.x`,
		`select * from "pg_temp".x`,
		`select PG_TEMP.f()`,
	},

	ReasonBackslash: {
		`select 'a\'; delete from users; --'`,
		`select '\'`,
		`select '\\\''`,
		`select 'it\'s'`,
		`select 'a\''; delete from users; --'`,
		`select n'\'`, `select b'\'`, `select U&'\'`,
		"select E'a'\n'\\''",
	},

	ReasonUnicodeName: {
		`select U&"\006e\0065xtval"('s')`,
		`select * from u&"users"`,
		`select 1 as U&"a"`,
	},

	ReasonLongName: {
		`select abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd`,
		`select 1 as "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd"`,
		`select * from t ööööööööööööööööööööööööööööööööööö`,
	},

	ReasonUnterminated: {
		`select 'a`, `select '`, `select 'a''`, `select E'a\'`, `select E'\`, `select '\`,
		`select "a`, `select "a""`, `show a "b`, `explain (verbose 'a`,
		`select $$a`, `select $a$b$A$`, `select $a$b$$`, `select $a$`,
		`select 1 /* a`, `select 1 /* /* */`, `select 1 /*/`, `/*`, `select 1 /* *`,
	},

	ReasonUnbalanced: {
		`(select 1`, `select 1)`, `select (1`, `select array[1`, `select array[1)`, `select (1]`, `select 1]`,
		`((select 1)`, `(select 1))`, `with x as (select 1`,
	},

	ReasonEncoding: {
		"select 1\x00", "\x00", "select '\xff'", "select \xc3", "select '\xed\xa0\x80'",
	},

	ReasonCharacter: {
		`select \ 1`, `select {1}`, `select $`, `select $a`, `select $a b$`, `select ""`, `select 1 */ 2`,
		`select 1for update`, `select 0x1F`, `select 1_000`, `select 1e`, `select 1.5a`, `select 1e'\'`, `select $1a`, `select .5for`,
		"select \x01 1", "select \x7f",
		`select * from t limit 1for update`,
		`select 1 /* */ */`,
	},

	ReasonUnknown: {
		`show`, `show 1`, `show (a)`, `show 'a'`, `show a, b`, `show a + b`, `show a for update`, `show from`, `show a ) b`,
		`explain (analyze, (1)) select 1`, `explain (verbose -1) select 1`, `explain (verbose`,
		`with x select 1`, `with x as select 1`, `with as (select 1) select 1`, `with x as (select 1)`, `with`,
		`with x as (select 1),`, `with x as (select 1), select 1`, `with x.y as (select 1) select 1`,
		`with select as (select 1) select 1`, `with x(a) (select 1) select 1`, `with x as f(1) select 1`,
		`with recursive x as (select 1 a) search depth first by f(a) set o select 1`,
		`select 1 for`, `select 1 for read only`, `select 1 for x`, `select "substring"('a' from 1 for 2)`,
		`select substring((1 for 2))`,
		`select a.for from a`,
	},
}

func TestRefusedStatements(t *testing.T) {
	c := newClassifier(t, Rules{})
	for reason, list := range refusedStatements {
		for _, sql := range list {
			if v := c.Statement(sql); v.Pure || v.Reason != reason {
				t.Errorf("%s\nhave %v, want %v", sql, v, reason)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	c := newClassifier(t, Rules{})
	deep := func(n int) string {
		text := "select "
		for range n {
			text += "("
		}
		text += "1"
		for range n {
			text += ")"
		}
		return text
	}
	if v := c.Statement(deep(maxDepth - 1)); !v.Pure {
		t.Errorf("depth %d: have %v, want pure read", maxDepth-1, v)
	}
	for _, n := range []int{maxDepth, maxDepth + 1, 10_000} {
		if v := c.Statement(deep(n)); v.Reason != ReasonDepth {
			t.Errorf("depth %d: have %v, want %v", n, v, ReasonDepth)
		}
	}
}

func TestReasonTexts(t *testing.T) {
	seen := map[string]Reason{}
	for r := ReasonNone; r <= ReasonUnknown; r++ {
		text := r.String()
		if other, ok := seen[text]; ok || text == "" {
			t.Errorf("reasons %d and %d have the text %q", other, r, text)
		}
		seen[text] = r
	}
	if have := (ReasonUnknown + 1).String(); have != "unknown reason" {
		t.Errorf("have %q for a reason that does not exist", have)
	}
}

func TestVerdictWord(t *testing.T) {
	c := newClassifier(t, Rules{})
	for sql, want := range map[string]string{
		`select 1`:                              "pure read",
		`select NextVal('s')`:                   "function: NextVal",
		`select pg_catalog."nextval"('s')`:      `function: "nextval"`,
		`select 1 from t for share`:             "row lock: for",
		`insert into t values ('secret')`:       "not a read statement: insert",
		`'secret'`:                              "not a read statement",
		`select 'secret`:                        "unterminated string, name or comment",
		`with x as (delete from t) select 'a'`:  "data-modifying statement: delete",
		`select 1; select 'secret'`:             "several statements",
		`select from t where f('secret') and 1`: "function: f",
	} {
		if have := c.Statement(sql).String(); have != want {
			t.Errorf("%s\nhave %q, want %q", sql, have, want)
		}
	}
}
