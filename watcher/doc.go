// Package watcher is the freshness sensor: it knows how far each server has got.
//
// For every server ("node") it keeps one small connection of its own, never one
// of the application's pool, and publishes what that connection says: role,
// position, timeline, cluster, and which life of the server it was read in. It
// states facts and decides nothing; package policy decides.
//
// # When a position counts
//
//   - Only while the connection it came from is alive. A standby that crashed
//     opens for reads before it has replayed all of its local WAL again, so its
//     position goes backwards; a crash closes every connection, and with them
//     dies what they said.
//   - Only for the incarnation it was read in: postmaster start time plus the
//     statistics reset times, which change at every crash recovery even where
//     the start time does not.
//   - Only on a proven timeline: the one of the last checkpoint record replayed,
//     which lags a promotion but never leads it.
//
// # Asking
//
// [Node.Sample] asks a node for its position now. Callers that ask at the same
// time share one query: the next one to start, never one under way, so the
// answer is always newer than the question. This one primitive serves captures
// after a commit, marks that need resolving, and readers waiting for a replica.
package watcher
