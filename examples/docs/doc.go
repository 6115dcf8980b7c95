// Package docs holds README.md, CONTRIBUTING.md and everything below docs/ to what
// is true: its tests compile each block of Go that they show, run each block of SQL
// on a real primary or replica, check that each block of shell can be parsed, and
// that each link leads somewhere.
//
// A block that begins with "package" is compiled as it is. Any other block is a
// fragment, of declarations or of statements, and may use whatever
// testdata/context.go imports and declares; "…" in it stands for what was left out.
// A block in "sql" runs on the primary, one in "sql replica" on a replica, and one in
// "sql elsewhere" is about servers that tests do not have.
package docs
