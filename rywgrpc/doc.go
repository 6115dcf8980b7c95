// Package rywgrpc carries tokens over gRPC: interceptors for both sides, unary and
// streaming.
//
//	srv := grpc.NewServer(rywgrpc.ServerOptions(nil)...)
//	conn, err := grpc.NewClient(addr, append(rywgrpc.DialOptions(nil), …)...)
//
// A call sends the token of the session in its context along, and that session
// observes what comes back. On the other side the call's context has a session that
// begins with it: a handler uses that context for its queries.
//
// # What travels
//
// The metadata x-consistency-token, both ways. An answer has it in its trailer, which
// is sent when the handler has returned, whatever its status; so unlike HTTP's, a
// gRPC answer is never too early to speak of a write. A stream also has it in its
// header, for who uses the first message before the stream has ended. A handler that
// sent no statement sends none.
//
// # Settings
//
// A carrier.Carrier has them: keys for signing, and what becomes of a call without a
// token; nil is its zero value. A call that is refused for it fails with
// FailedPrecondition; one with a token that is invalid with InvalidArgument, always.
// A call whose own context has no session sends nothing: the other side counts it as
// missing.
package rywgrpc
