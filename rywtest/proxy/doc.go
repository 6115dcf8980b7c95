// Package proxy is a TCP proxy for tests and benchmarks: it adds latency, cuts
// and black-holes connections, counts round trips on the wire, and cuts a
// PostgreSQL connection at a chosen message.
//
//	p, err := proxy.New("127.0.0.1:5432", proxy.Options{Delay: 500 * time.Microsecond})
//	if err != nil { … }
//	defer p.Close()
//	conn, err := pgx.Connect(ctx, "postgres://postgres@"+p.Addr()+"/postgres?sslmode=disable")
//
// # Latency
//
// Delay holds back every chunk of bytes for its time, in each direction, without
// slowing down the stream: chunks that follow wait at the same time, as they
// would on a long cable. On Linux a timer file descriptor is used, because the
// runtime's own timers are rounded up to a millisecond when a program is idle;
// chunks then leave within about 50 µs of their time.
//
// # Failures
//
// Partition is a network that swallows packets: nothing arrives, nothing is
// refused, new connections open and stay silent; Heal delivers what was held
// back. CutAll resets the connections there are. Refuse refuses new ones.
//
// # Round trips
//
// Counters.RoundTrips counts, per connection, how often the client sent
// something after the server had answered. For a protocol of questions and
// answers this is the number of times somebody waited for the network; the very
// first message of a connection, which follows no answer, is not counted. A
// client that goes on sending while the answer has begun to arrive is counted
// too often.
//
// # Messages
//
// CutOn and CutAnswer look at the messages of a PostgreSQL client after its
// startup (PostgreSQL manual, 55.7 "Message Formats") and lose either the
// message or its answer: the way to test what an application makes of a commit
// whose outcome it never learns. Encrypted connections pass unseen.
package proxy
