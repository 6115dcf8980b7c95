// Package rywpgx is gorm.io/driver/postgres with a driver that sees every commit
// and gets its position for nothing.
//
//	db, err := gorm.Open(rywpgx.Open(dsn), &gorm.Config{})
//	…
//	db.Use(rywplugin.New(rywplugin.Config{Replicas: []gorm.Dialector{rywpgx.Open(r1), rywpgx.Open(r2)}}))
//
// In everything else it does what postgres.Open and postgres.New do. Without the
// plugin it adds nothing at all. [NewConnector] is for pools that are opened by
// hand and given to GORM as postgres.Config.Conn.
//
// # How
//
// Each connection has a tap between pgx and the wire. When pgx sends COMMIT, or a
// statement outside of a transaction that may write, the tap puts a second message
// into the same packet, which asks for the server's position; and it takes the
// answer out of what comes back. The position is asked for in a message of its own,
// so the server has committed by then, whatever kind of statement it was; inside of
// the transaction, or in one message without BEGIN, the position would be from
// before the commit record. The server answers both in turn: nobody waits for the
// network one more time, and an error of either does not touch the other.
//
// pgx itself is not changed and not reimplemented. Its statements, in all of its
// ways of sending them, its rows, errors and caches are its own, and the
// connections are its own *stdlib.Conn, so that
//
//	conn.Raw(func(dc any) error { pgxConn := dc.(*stdlib.Conn).Conn(); … })
//
// works as pgx documents it. What is done with that *pgx.Conn is seen, too. Below
// it, with its PgConn, statements in a transaction are seen, and others are not.
//
// # What it costs
//
// No round trip. The position is not even a statement: it is a call of a built-in
// function by the protocol's FunctionCall message (PostgreSQL manual, 55.2.5),
// which takes the server a few microseconds. Three kinds of writes can have no
// message behind them and cost one more round trip: COPY, batches of pgx, and
// texts of several statements that begin a transaction or define a function.
// COMMIT AND CHAIN is reported without a position, because asking for it would
// take the snapshot of the transaction that has begun.
//
// # Outcomes
//
// A transaction or statement ends as Committed, Undone or Indeterminate, see
// [Outcome]; a commit whose acknowledgement came and whose position did not is
// Committed without a position. The application's error is never changed.
//
// # Checked reads
//
// [Query] and [QueryRow] send the question first: the position of the very server
// that reads, in the packet of the read. PrepareStmt and the simple protocol work
// alike.
//
// # Poolers
//
// Behind PgBouncer in transaction mode question and statement were always answered
// by the same server connection, because PgBouncer keeps a server connection for
// as long as it owes the client an answer. Which one that is changes, so the
// question asks for everything, and the sample says that it is Pooled. A pooler
// that sends single statements to different servers must not be used with this
// package.
package rywpgx
