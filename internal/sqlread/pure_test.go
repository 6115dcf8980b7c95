package sqlread

import "testing"

// pureStatements are reads, every one of which PostgreSQL 15 runs in a READ
// ONLY transaction over the tables users, orders and t.
var pureStatements = []string{
	// Plain statements, comments and white space.
	`select 1`,
	`SELECT 1;`,
	"select 1 ; \n -- done\n /* really */ ",
	`  /* traceparent='00-4bf9-01',route='/users' */ select * from users`,
	`select * from users /*controller='users'*/`,
	`/*+ SeqScan(users) */ select * from users`,
	"-- name: ListUsers :many\nselect id from users",
	"-- a\rselect 1",
	"--\nselect 1 -- for update",
	`select 1 -- for update`,
	`select /* for update */ 1`,
	`select /* a /* nested */ insert into t */ 1`,
	`select 1 /**/`,
	`select 2*/* two */3`,
	`select 1 +-- one` + "\n1",
	"\tselect\f1\n+\r1",
	`select`,
	`select from users`,
	`values (1), (2)`,
	`values (1, 'a'), (2, upper('b')) order by 1`,
	`table users`,
	`table only users`,
	`(select 1)`,
	`((select 1) union (select 2))`,
	`(select 1) union select 2 order by 1`,
	`(values (1)) union all (table t2)`,
	`(with x as (select 1) select * from x)`,
	`select all 1`,
	`select 1 union all select 2 except select 3 intersect select 4`,
	`select 1 union table t2`,

	// SHOW and EXPLAIN.
	`show server_version`,
	`SHOW ALL;`,
	`show transaction isolation level`,
	`show time zone`,
	`show session authorization`,
	`show "TimeZone"`,
	`show app.setting`,
	`explain select * from users`,
	`explain (select 1)`,
	`explain ((select 1) union select 2)`,
	`explain (with x as (select 1) table x)`,
	`explain (values (1))`,
	`explain values (1)`,
	`explain verbose select 1`,
	`explain analyze select * from users`,
	`explain analyse verbose select 1`,
	`explain analyze (select 1)`,
	`EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM users`,
	`explain (analyze true, costs off, format json, timing 0) with x as (select 1) select * from x`,
	`explain (analyze) (select 1)`,
	`explain (format 'json', "costs" off) table users`,

	// WITH.
	`with x as (select 1) select * from x`,
	`with x(a) as (select 1), y(a, b) as (select 1, 2) select * from x join y using (a)`,
	`with x as materialized (select 1), y as not materialized (values (2)) table x`,
	`with recursive x(n) as (select 1 union all select n + 1 from x where n < 5) select n from x`,
	`with recursive x as (select 1 a, 2 b union all select b, a from x where a < 0) search depth first by a, b set ord select * from x order by ord`,
	`with recursive x as (select 1 a union all select a from x) cycle a set is_cycle using path select * from x`,
	`with recursive x(a, b) as (select 1, 2 union select b, a from x) search breadth first by a set o cycle a, b set c to 'y' default 'n' using p, y as (select 1) select * from x, y`,
	`with x as (with y as (select 1) select * from y) select * from x`,
	`with x as ((select 1) union select 2) select * from x`,
	`with x as (table users) (select count(*) from x)`,
	`with "update" as (select 1) select * from "update"`,
	`with nextval(a) as (select 1) select a from nextval`,
	`with x as (select 1) select * from x order by 1, abs(1)`,
	`with x as (select 1) values (1)`,
	`with x as (select 1), recursive as (select 2) select * from x, recursive`,
	`select * from (with x as (select 1) select * from x) y`,
	`select 1 where 1 in (with x as (select 1) select * from x)`,
	`with totals as (select user_id, sum(total) as total from orders group by user_id)
	 select u.name, coalesce(t.total, 0) from users u left join totals t on t.user_id = u.id`,

	// Strings of every kind.
	`select 'it''s; delete from users'`,
	`select '; drop table users; --'`,
	`select 'C:\temp\new'`,
	`select 'ends with two \\'`,
	`select e'it\'s /* for update'`,
	`select E'\\', 1`,
	`select E'\''';', E'a''b\'c'`,
	"select E'a'\n'b\\\\'",
	"select 'a'\n'b'",
	`select $$for update; nextval('s')$$`,
	`select $q$ $$ ' " /* $q $Q$ $q$`,
	`select $été$x$été$`,
	`select $_1$a$b$_1$`,
	`select $a$x$ab$a$`,
	`select 1,$$x$$`,
	`select U&'d\0061ta'`,
	`select u&'d!0061ta' uescape '!'`,
	`select b'0101', X'1FF', n'nchar', B''`,
	`select date '2024-01-01', timestamp with time zone '2024-01-01 00:00+00', interval '1' day, interval '90' minute`,
	`select interval(3) '1.5 seconds', time(3) '10:00', timestamp(3) with time zone '2024-01-01'`,
	`select numeric(10,2) '1.5', varchar(10) 'abc', bit(3) '101', char(2) 'a'`,

	// Names.
	`select "for", "update", "into" from (values (1,2,3)) v("for","update","into")`,
	`select "a""b", "A;B" from (values (1,2)) v("a""b","A;B")`,
	`select größe from (values (1)) v(größe)`,
	`select u.update, u.insert, u.delete from (values (1,2,3)) u("update","insert","delete")`,
	`select update from (values (1)) v(update)`,
	`select insert, merge, delete, update, 1 from (values (1,2,3,4)) v(insert,merge,delete,update)`,
	`select 1 where exists (select from (values (1)) v(update) where update > 0 or v.update is null)`,
	`select updated_at, format, forfeit, intolerance, selected from (values (1,2,3,4,5)) v(updated_at,format,forfeit,intolerance,selected)`,
	`select a$b from (values (1)) v(a$b)`,
	`select nextval from (values (1)) v(nextval)`,
	`select setval, v.currval from (values (1,2)) v(setval, currval)`,
	`select 1 as "nextval(", 2 as lock, 3 as copy, 4 as call, 5 as share`,
	`select share, no, key from (values (1,2,3)) v(share, no, key)`,
	`select public.users.id from public.users`,
	`select "public"."users"."id" from "public"."users"`,
	`select public . users . id from public . users`,
	`select users.* from users`,
	`select (users.*), (users).row_to_json, (users).name, (tags).jsonb_typeof, (array[1,2])[1].int4abs, ((1).float8).abs, (1).float8.abs from users` + ` limit 0`,

	// Numbers, parameters, operators.
	`select 1.5, .5, 1., 1e10, 1.5E-3, .5e+2, 0`,
	`select * from users where id = 1 and name <> 'a' or id >= 3 and id != 4`,
	`select tags->'a', tags->>'b', tags #> '{a}', tags @> '{}', tags ? 'a', tags ?| array['a'], tags ?& array['a'] from users`,
	`select name ~* '^a\d+$', name !~~ 'b', name || 'c', -id, @ id, id % 2, id ^ 2, ~ id, id # 1, id & 1, id << 2 from users`,
	`select - -1, +1, 1 - -1, 1-(-1), 2*(3)`,
	`select tags ? ('a') from users`,
	`select to_tsvector('a') @@to_tsquery('a')`,
	`select '{1,2}'::int[] <@array[1,2]`,
	`select array[1,2], array[[1],[2]], (array[1,2])[1], (array[1,2,3])[1:2], (array[1,2])[:1], array(select 1)`,
	`select id::text, id::numeric(10,2), name::varchar(10), name::"char", id::pg_catalog.int8, name::character varying (10) from users`,
	`select cast(id as numeric(10,2)), cast(name as varchar(3)), cast(created_at as timestamp(3) with time zone) from users`,
	`select '{1}'::int[], '1'::double precision, '101'::bit varying(5), created_at::timestamp(3) without time zone from users`,
	`select 'users'::regclass, 'users'::regclass::oid`,
	`select created_at at time zone 'UTC', created_at at time zone (select 'UTC') from users`,

	// Expressions that look like calls.
	`select coalesce(name, 'x'), nullif(id, 1), greatest(1, 2), least(1, 2) from users`,
	`select case when (id = 1) then (2) else (3) end from users`,
	`select case (id) when (1) then 'a' end from users`,
	`select exists (select 1), 1 in (1, 2), 1 not in (1), 1 = any (array[1]), 1 = all(array[1]), 1 = some (select 1)`,
	`select row(1, 2), (1, 2) = (1, 2), row (1) is null, (now(), now()) overlaps (now(), interval '1')`,
	`select extract(epoch from created_at), extract('year' from now()) from users`,
	`select substring(name from 2 for 3), substring(name for 2), substring(name, 1, 2), substring(name from 'a') from users`,
	`select substring(name from (1) for (2)) from users`,
	`select substring(name similar 'a' escape '#') from users`,
	`select overlay(name placing 'x' from 1 for 2) from users`,
	`select trim(both ' ' from name), trim(leading from name), trim(name), position('a' in name) from users`,
	`select id between (1) and (2), id not between symmetric (1) and (2) from users`,
	`select name like ('a' || '%'), name ilike ('a'), name not like ('b'), name similar to ('c'), name is not null from users`,
	`select not (id = 1), (id = 1) is true, (1) isnull from users`,
	`select name like 'a!%' escape '!', name ilike ('a') || 'b' from users`,
	`select name collate "C" from users order by name collate "C" desc nulls last`,
	`select current_user, session_user, user, current_date, current_time(2), current_timestamp(3), localtime(0), localtimestamp, current_catalog, current_schema`,
	`select xmlelement(name a, xmlattributes(1 as b), 'c'), xmlforest(1 as x), xmlconcat(null::xml), xmlpi(name php)`,
	`select xmlserialize(content xmlparse(content 'a') as varchar(10))`,
	`select grouping(status), count(*) from orders group by rollup(status)`,

	// Functions.
	`select count(*), count(distinct status), sum(total) filter (where total > 0), avg(total), max(id) from orders`,
	`select string_agg(name, ',' order by name), array_agg(distinct id) from users`,
	`select percentile_cont(0.5) within group (order by total) from orders`,
	`select percentile_cont(0.5) within group (order by total) filter (where total > 0) from orders`,
	`select row_number() over (partition by status order by total desc), sum(total) over w, lag(total, 1) over (w rows between 1 preceding and current row) from orders window w as (partition by status order by id)`,
	`select count(*) filter (where true) over () from users`,
	`select lower(name), UPPER(name), Length(name), pg_catalog.lower(name), "lower"(name), "pg_catalog"."lower"(name), pg_catalog . lower /* x */ (name) from users`,
	`select now(), clock_timestamp(), random(), gen_random_uuid(), pg_sleep(0)`,
	`select date_trunc('day', created_at), to_char(created_at, 'YYYY'), age(created_at) from users`,
	`select jsonb_build_object('a', 1), jsonb_agg(id), json_build_array(1), jsonb_exists('{}', 'a') from users`,
	`select left(name, 1), right(name, 1), replace(name, 'a', 'b'), split_part(name, 'a', 1), format('%s', name), concat_ws(',', name) from users`,
	`select left (name, 1) from users u left join orders o on (o.user_id = u.id)`,
	`select concat(variadic array['a', 'b']), make_interval(days => 1), make_interval(days := 1)`,
	`select pg_is_in_recovery(), pg_backend_pid(), inet_server_addr(), inet_server_port(), current_setting('server_version'), pg_postmaster_start_time(), pg_last_wal_replay_lsn()`,
	`select current_setting('app.user', true), version(), current_database(), current_schemas(true), pg_size_pretty(pg_relation_size('users'))`,
	`select has_table_privilege('users', 'select'), to_regclass('users'), pg_get_viewdef('pg_views'::regclass), obj_description('users'::regclass)`,
	`select int4(1.5), text('a'), float8(1), date('2024-01-01')`,

	// FROM.
	`select * from generate_series(1, 3)`,
	`select * from generate_series(1, 3) g`,
	`select * from generate_series(1, 3) as g(n)`,
	`select * from generate_series(1, 3) g(n)`,
	`select * from unnest(array[1], array['a']) with ordinality as u(a, b, n)`,
	`select * from unnest(array[1]) with ordinality u(a, n)`,
	`select * from rows from (generate_series(1, 2), unnest(array[1])) as r(a, b)`,
	`select * from json_to_record('{"a":1}') as (a int, b numeric(10,2))`,
	`select * from json_to_record('{"a":1}') as x(a int, b varchar(10))`,
	`select * from users u cross join lateral (select * from orders o where o.user_id = u.id limit 1) o(a, b)`,
	`select * from users u, lateral generate_series(1, u.id) g(n)`,
	`select * from users u left join lateral jsonb_each(u.tags) e on (true)`,
	`select * from users join (select 1 as id) x using (id)`,
	`select * from users natural join (select 1 as id) x`,
	`select * from users left join (orders o join t on (t.a = o.id)) on (o.user_id = users.id)`,
	`select * from (users cross join t) as j`,
	`select * from users u join (orders o cross join t) on u.id = o.id join (t2 cross join x) on (true)`,
	`select * from users as u(x, y)`,
	`select * from only users, only (orders)`,
	`select * from orders tablesample bernoulli(10)`,
	`select * from orders tablesample system (10) repeatable (1)`,
	`select * from xmltable('/a' passing xml '<a id="1"/>' columns id int path '@id', n for ordinality)` + ` limit 0`,
	`select * from (values (1, 'a'), (2, 'b')) v (id, name)`,
	`select * from (select 1) as x, (select 2) y`,

	// Clauses.
	`select distinct status from orders`,
	`select distinct (status) from orders`,
	`select distinct on (status) status, lower(status) from orders order by status`,
	`select distinct on (status, lower(status)) (status) from orders`,
	`select status, count(*) from orders group by status having count(*) > 1 order by 2 desc limit 10 offset 5`,
	`select a, b, count(*) from t group by grouping sets ((a), (b), ())`,
	`select a, b from t group by grouping sets (rollup(a), cube (a, b))`,
	`select a, b from t group by a, rollup (b)`,
	`select a, b from t group by distinct cube(a, b), rollup(a)`,
	`select * from users order by id using <`,
	`select * from users order by (id) limit (select 1) offset (1)`,
	`select * from users limit all`,
	`select * from users order by id fetch first 3 rows with ties`,
	`select * from users offset 1 rows fetch next row only`,
	`select * from users where (id, name) in (select id, name from users) and not exists (select 1)`,
	`select * from orders where user_id = (select id from users limit 1) and created_at > now() - interval '1 day'`,

	// The catalogue.
	`select * from pg_stat_activity`,
	`select last_value from s`,
}

// pureOnNewerServers are reads that PostgreSQL 15 does not know.
var pureOnNewerServers = []string{
	`select any_value(name), array_sample(array[1], 1) from users`,
	`select json_object('a' : 1), json_array(1, 2), json_value(tags, '$.a' returning numeric(10,2)), json_exists(tags, '$') from users`,
	`select json_arrayagg(id order by id) filter (where id > 1) from users`,
	`select * from json_table('[1]', '$[*]' columns (id for ordinality))`,
	`select * from users, json_table(tags, '$[*]' as root columns (a varchar(10) path '$', nested path '$.b' columns (c int path '$')))`,
	`select * from json_table('[]'::json, '$' passing 1 as x columns (a int exists path '$.a')) as j`,
	`select uuidv7(), crc32('a'), casefold('A'), array_sort(array[2, 1])`,
	`select system_user`,
}

func TestPureStatements(t *testing.T) {
	c := newClassifier(t, Rules{})
	for _, sql := range append(pureStatements, pureOnNewerServers...) {
		if v := c.Statement(sql); !v.Pure {
			t.Errorf("%s\nhave %v, want pure read", sql, v)
		}
	}
}

func newClassifier(t testing.TB, r Rules) *Classifier {
	t.Helper()
	c, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
