package sqlread

import "strings"

// catalogue holds the names of what describes tables, columns, types and indexes
// (PostgreSQL manual, chapters 37 and 53): what a migrator reads before it
// changes them. Statistics, settings and activity are of the server that is
// asked, and not in it.
var catalogue = func() looseNames {
	names := looseNames{}
	names.add(name{last: "information_schema"})
	for _, table := range strings.Fields(`pg_attrdef pg_attribute pg_class pg_collation pg_constraint
		pg_depend pg_description pg_enum pg_event_trigger pg_extension pg_index pg_indexes pg_inherits
		pg_matviews pg_namespace pg_partitioned_table pg_policies pg_policy pg_proc pg_range pg_rewrite
		pg_rules pg_sequence pg_sequences pg_tables pg_trigger pg_type pg_views`) {
		names.add(name{schema: "pg_catalog", last: table})
	}
	return names
}()
