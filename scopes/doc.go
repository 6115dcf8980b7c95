// Package scopes is how a query, or the context it is made with, says what it
// must see.
//
//	db.Scopes(scopes.ReadYourWrites(tok)).First(&p, id) // at least what tok covers
//	db.Scopes(scopes.StaleOK()).Find(&list)             // any healthy replica
//	db.Scopes(scopes.Strong()).First(&p, id)            // the primary
//
// GORM's generics, gen and Begin do not see scopes; they take the same as
// clauses:
//
//	gorm.G[Project](db, scopes.ReadYourWrites(tok).Clause()).Where("id = ?", id).First(ctx)
//
// Code that cannot touch the query puts it into the context:
//
//	ctx = scopes.WithStaleOK(ctx)
//
// # Precedence
//
// What the query says, then what its context says, then the session in the
// context, then Config.Default. On one query the strongest of several counts, and
// the tokens of all of them. ReadYourWrites adds to the session's own token.
// StaleOK in the context never hides what the session has written; StaleOK on
// the query does, because it is about that query alone.
//
// # Without the plugin
//
// A scope or clause used on a *gorm.DB that the plugin is not installed on makes
// the query fail with ErrNoPlugin: it would otherwise be ignored, and the read be
// stale without a word.
package scopes
