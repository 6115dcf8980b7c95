// Package session carries what one causal thread of work has written and read.
//
// A session is usually one user's: across requests, processes, services and
// jobs. Put one into a context and every query made with that context through
// the plugin both honours it and advances it:
//
//	ctx = session.NewContext(ctx, session.New())
//	db.WithContext(ctx).Create(&order)     // advances the session
//	db.WithContext(ctx).First(&o, id)      // sees the order, on a replica if one has it
//
// To continue the thread elsewhere, hand over its token and observe it there:
//
//	s, _ := session.FromContext(ctx)
//	text := s.Token().String()             // into a header, a job's payload, …
//
//	tok, err := token.Parse(text)          // in the other process
//	ctx = session.NewContext(ctx, session.New(tok))
//
// # What it remembers
//
// Positions that writes reached and reads relied on, and marks: things that were
// done whose position is not known yet. A mark keeps the session on the primary
// (or on the very node that was read) until a position query that began after
// the mark was set resolves it. Nothing is ever forgotten, only replaced by a
// position that covers it.
//
// # Concurrency
//
// A Session may be used by any number of goroutines. Two queries running at the
// same time are not ordered by it: a read that began before a write returned
// need not see that write.
package session
