// Package sqlread decides whether a text of SQL is provably a pure read, so
// that it may run on a replica. It knows PostgreSQL 13 to 19.
//
// The answer is a lexer's, not a guess from how the text starts and ends: the
// text is split into tokens as the server splits it (comments that nest,
// dollar quotes, escapes, quoted names), and a shallow reading of its
// parentheses and WITH lists tells a function call from an alias, a type or a
// keyword. There is no full grammar, because none is needed: a pure read is
// one in which nothing was found that could write, lock, change the session
// or run unknown code.
//
// # What is not proved is not pure
//
// Text that the server would reject, newer syntax, a function that is not on
// the list, a character out of place: all of it is not pure. A false "not
// pure" costs one read on the primary; a false "pure" would be a stale read or
// a write that nobody captured.
//
// # Functions
//
// A call is harmless when its name is on the list in functions.go, made from
// the catalogue of a real server, or was declared in [Rules]. Names are
// compared, argument types are not: an overload of a built-in name that a user
// created in a schema of the search path counts as the built-in one, unless it
// is declared in [Rules.WritingFunctions].
//
// # What no text can show
//
// Views, row-level security, operators, casts, domains and the attribute
// notation row.function may run functions that the text does not name. They
// are taken as reads. A view that writes belongs into [Rules.PrimaryTables], a
// function called in attribute notation into [Rules.WritingFunctions].
//
// The table of cases is in docs/read-or-write.md; a test reads it.
package sqlread
