// Package callbacks ties routing and capture to GORM's life of a statement.
//
// Reads: dbresolver decides first; then the statement is given a pool that
// decides when the final SQL text is known, just before it is sent. Only the text
// tells whether a statement is a pure read, whatever clauses, scopes and raw
// fragments it was built from.
//
// Writes: the position is captured after the commit was acknowledged, never
// inside the transaction. Where GORM commits by itself, a callback behind its own
// does it; where the application commits, the transaction's own Commit does,
// because GORM runs its "after commit" callbacks before the real COMMIT there
// (go-gorm/gorm issue 7367). A commit that cannot be observed leaves a mark.
package callbacks
