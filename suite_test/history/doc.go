// Package history proves, or refutes, read-your-writes and monotonic reads for
// recorded runs of many clients.
//
// # Recording
//
// A [Recorder] per process collects what its sessions did. A session is one
// causal thread of work: its operations follow one another. Work that goes on
// in another place (a token handed to another session, goroutine or process) is
// another session that receives the state of the first:
//
//	rec := history.NewRecorder("web-1")
//	alice := rec.Session("alice")
//
//	op := alice.Write("cart:7", history.VersionUnknown) // the row assigns it
//	v, err := update(ctx)                               // … SET v = v + 1 RETURNING v
//	op.End(history.Answer{Outcome: history.OK, Version: v})
//
//	mark := alice.Mark().String()                       // travels beside the token
//	…
//	bob := rec.Session("bob")
//	bob.Receive(mark)                                   // from here on alice's past binds bob
//	op = bob.Read("cart:7")
//	op.End(history.Answer{Outcome: history.OK, Version: v, Node: "r2", Role: history.Replica})
//
// [Encode] and [Decode] move histories between processes as JSON lines, [Merge]
// joins them, [Check] judges them.
//
// # Model
//
// A key is a register that holds a version, a number that only grows. Version 0
// is "absent". Either the row assigns versions (v + 1, RETURNING v), or the
// key's only writer does, under a condition such as "WHERE v < new". Where a
// failover may lose writes only the second works: a row that lost version 6
// hands out 6 again, and two acknowledged writes of one version cannot be
// judged.
//
// The causal past of an operation is what its session did before, and, through
// each receive, what the sending session had done and received up to the mark.
//
// # Rules
//
//  1. Read your writes: a read returns at least the highest version whose write
//     was acknowledged in its causal past.
//  2. Monotonic reads: a read returns at least the highest version that was read
//     in its causal past.
//  3. Values have an origin: a write of that version, not certainly failed, that
//     began before the read ended; or the declared initial version.
//
// A write whose outcome is unknown may appear at any later time, or never. It
// binds nobody until it was read.
//
// # Excuses
//
// Exactly two, each proved from the record or not given, and each returned
// apart in the [Result]:
//
//   - Blind spot (never in a strict run): a newer version was read on a replica,
//     the older one later on a primary, and the newer version's commit had not
//     been acknowledged to its writer when the older read began. PostgreSQL shows
//     a commit on a replica at replay, on the primary only after its own flush
//     and synchronous wait.
//   - Lost write: an acknowledged write is missing whose position lies beyond the
//     switch point of a recorded promotion, on an older timeline, and the read
//     carries LostReported.
//
// Neither covers a version that somebody read, whose writer never learnt of its
// commit, and which a promotion then lost: that is a violation.
//
// # What cannot be judged
//
// A causal link to an operation that is not in the history, overlapping
// operations of one session, times of different clocks, malformed records, a
// history without a single read: all of it is listed in [Result].Unknown, and
// [Result.Ok] is false as long as that list is not empty.
//
// # The one trap
//
// Record the start before the request is sent and the end after the answer
// came, also for errors. A write that failed with anything but a certain abort
// is [Unknown], not [Failed]: as Failed it turns a legal read into a dirty one.
package history
