// Package rywtest starts a real PostgreSQL primary with streaming replicas for a
// test, in about half a second, and makes them lag, stop, crash, freeze and fail
// over on demand. Tests of staleness need that: a replica that is up to date by
// the time somebody looks hides every bug.
//
//	c, err := rywtest.Start(ctx, rywtest.Options{Replicas: 2})
//	if err != nil { … }
//	defer c.Close()
//	db := open(c.Primary().DSN(), c.Replica(0).DSN(), c.Replica(1).DSN())
//
//	c.Replica(0).PauseReplay(ctx)  // from here on reads from it are stale
//
// # What a test can do to a server
//
//   - lag: PauseReplay, ResumeReplay, SetApplyDelay
//   - end: Stop, StopImmediate, Kill, KillBackend, and Start, Restart
//   - hang: Freeze, Thaw; and, with Options.Partitionable, Partition, Heal
//   - fail over: Promote, Follow, Cluster.AddReplica
//   - wait: Position, WaitCaughtUp, Cluster.WaitReplicated; never sleep
//
// Latency, cut connections, lost commits and counts of round trips are the proxy
// package's, which stands between a client and DSN.
//
// To lose writes in a failover, stop the replicas (Stop) before the write and start
// them again after the primary is gone: a frozen or partitioned one still gets
// what was sent to it.
//
// # What is needed
//
// The programs of a PostgreSQL server, 14 or newer, found by Options.BinDir,
// $RYWTEST_PG_BIN, the PATH, pg_config or in the usual folders; when there are
// none, the error names the command that installs them. Linux or macOS. Tests may
// run as an ordinary user, or as root: servers then run as the user postgres, or
// nobody. Any number of test processes may run at once.
//
// # In containers
//
// With Options.Backend Docker, or RYWTEST_BACKEND=docker in the environment, each
// server is a container of a Docker engine on this machine, from the image that
// $RYWTEST_IMAGE names; no PostgreSQL is needed here then. Tests see the same, but
// that Start takes seconds, that SocketDir is empty, and that after Heal replication
// goes on only when TCP sends again, up to as long after as the partition lasted.
//
// # What is different from a server in production
//
// fsync is off, which is about crashes of the machine only; connections are
// trusted; replicas try to reconnect every 50 ms and the primary keeps 1 GB of WAL
// for them; dynamic shared memory is in the data directory; data checksums are on,
// as in PostgreSQL 18, so that Follow can rewind. Whatever decides what a reader
// sees, synchronous_commit and full_page_writes among it, is PostgreSQL's default.
// Options.Settings can change all but addresses.
//
// # Where things are
//
// Everything of a cluster is in one directory: below $RYWTEST_DIR or $TMPDIR if that
// is set, else in /dev/shm if that has 4 GB of room, else in /tmp. The first Start of each
// PostgreSQL version makes a template, which stays in $RYWTEST_CACHE or the user's
// cache folder, and which others copy; for Docker it is an image of the engine's,
// gorm-ryw/rywtest-template. "go run github.com/gorm-ryw/gorm-ryw/rywtest/cmd/cleanup"
// removes them. Each cluster gets a system identifier of its own.
//
// # Nothing stays behind
//
// Close ends and removes everything. So does a Start that fails or whose context
// ends. On SIGINT and SIGTERM all clusters are closed and the signal is raised
// again; handlers of the program's own see it twice. If the process dies otherwise
// (SIGKILL, a panic, os.Exit) a watchdog, a small shell process that notices a
// pipe being closed, does it within seconds; an engine that is asked for more than the
// machine can do takes longer. What a machine that goes down leaves in an engine,
// "cleanup -leftovers" removes.
package rywtest
