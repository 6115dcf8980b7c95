// Command torture has an application of several processes write and read through
// the library for minutes, while servers crash, freeze, are cut off and fail over,
// and judges everything that was seen.
//
//	go run ./suite_test/torture -duration 10m -seed 1
//
// Its last line is
//
//	torture: ops=N faults=M ryw_violations=0 monotonic_violations=0 blind_spot=B lost=L caller_errors=E replica_share=P%
//
// and its exit status 0 if no guarantee was broken, everything could be judged, no
// read failed while a node could have served it, and no operation outlived its
// deadline by five seconds; 1 otherwise; 2 if the run could not be carried out, or
// the command line makes no sense. Above that line are the first violations as
// timelines, the faults that were near them, and tables of faults, reasons and
// errors.
//
// # What runs
//
// A primary and three standbys (package rywtest, its local back-end), and between
// them and everybody else a network of proxies (package rywtest/proxy): one from
// the clients to each server, one from each server to its primary, and one that is
// led to whoever is the primary.
//
// Worker processes, in equal parts writers, readers and jobs: this program started
// again. Each opens the database as an application does, half of them with
// gorm.io/driver/postgres and half with rywpgx, some with prepared statements. Half
// of them find the primary through the moving proxy and half by a DSN of all
// servers with target_session_attrs=read-write. All four servers are given as
// replicas, since each may be one.
//
// A worker has twelve threads of work, half of them quick, half taking a third of a
// second between operations, whose tokens all servers have covered for long. What a
// thread has seen it carries on in one of three ways, which changes with each
// session: a session in memory, the text of a token put into a new session each
// time, or the text given to each query as a scope. A writer hands its token to
// readers and jobs, a job reads what the writer wrote, writes its own result and
// hands its token on, to writers too; all as lines of JSON through the parent
// process. Each key has one writer, which numbers its versions, so that a write that
// a failover lost is not taken for a stale read. Some reads are Strong, and some
// outside of any session (StaleOK): those are not judged, but must not fail either.
//
// # Faults
//
// The kinds are dealt like cards, one to a step or two at the same time: see Kind
// for the list, or run with -print 20. Before half of the crashes of a standby 32 MB
// of WAL are written, and then some rows, which it shows again only when it has
// replayed all of that again. Worker processes are stopped for a while and wake with
// what they knew.
//
// A failover lets the primary die (its clients are cut off first), promotes the
// standby that has received most and leads everybody there; the others go over to it
// by themselves. In half of the failovers the standbys were cut off from the primary
// for a while before, so that acknowledged writes are lost; -lossless leaves that
// out. The old primary comes back by pg_rewind, or a new base backup, while other
// faults go on. CHECKPOINT is run on the new primary and then on each standby.
//
// Three more kinds of failover have their own way to lose writes. The old primary
// lives on until the others have gone over, and takes writes from whoever finds the
// primary by a DSN of all servers. It dies, and comes back as the primary that it
// was, for the same ones to meet. Or one standby has received more than the one that
// is promoted, cannot follow it, and serves on the old timeline until it is rebuilt.
//
// # Crashes
//
// With -crashes 200 there is nothing but crashes of standbys, 200 of them: SIGKILL,
// SIGKILL of one backend, immediate stop, in turn, some of two standbys at once. Each
// finds at least 100 MB of WAL behind the standby's last restartpoint, and behind
// where it opens for reads, as its control file says before and after; standbys make
// restartpoints only when they are told to. Readers do not pause between operations,
// pools have four connections for twelve threads, and up to two worker processes
// sleep from before the crash until after the restart. The next crash waits until
// replicas have answered a thousand judged reads. The report then has a line
//
//	crashes: crashes=N frozen_across=F wal_min=WMB replica_reads=R per_crash=P fewest_between=B racing=A stale=0
//
// and the exit status is 1 if a crash was nearer than 100 MB, or fewer than a
// thousand reads were between two. racing counts the reads that replicas answered
// while one was down, or back for less than a second. -probe 10s has the workers'
// watchers ask that seldom.
//
// Commits are synchronous with the primary's own disk throughout: a server that is
// killed loses asynchronous commits without any failover, which nothing can excuse.
//
// # What is judged
//
// The histories of all processes, by package history, on the monotonic clock that
// all processes of a machine share (Linux). It excuses a blind spot and a lost write
// that the read's explanation reports, and counts both. The position of a lost write
// is the one that the library captured; where it could not capture one, the program
// gives the write a position beyond the switch point if the new primary, looked at
// before the clients were led to it, had an older version than was acknowledged.
//
// While two servers take writes, an application without rywpgx is promised less: a
// position may be asked of the other one. What it is not promised is left out, one
// operation at a time, and counted: for workers on gorm.io/driver/postgres with a DSN
// of all servers, the reads that a primary answered while there were two, and the
// writes that were captured on another timeline than that of the server that took
// them, as that one's own record of its writes says. A third excuse is proved by the
// same record: what the older primary took without its writer ever learning that,
// somebody may have read there; its loss must be reported like any other. Reads that
// are refused because the process has met the older of two primaries
// (ErrStalePrimary) are counted apart.
//
// An error of a read counts as one that should not have been if a witness, which
// asks every server 20 times a second through the workers' proxies, was answered
// before the read began, until 200 ms after it ended, and all the time in between: by
// the primary, on the worker's way to it; or, unless only a primary would do (Strong,
// or a mark in the token), by a standby that had been there for two seconds and had
// replayed what the token asks for, on its timeline, two seconds before the primary
// answered last: without a primary nobody can prove a newer position. If the token
// names a standby that was read, it is that one. Errors behind a read's first row are
// counted apart: nothing may be tried again then. So are those of a worker that was frozen past
// a deadline it would have kept awake.
//
// With -strict the library runs in mode MonotonicStrict and no blind spot is
// excused. Reads that the mode refuses (ErrNotMonotonic) are counted among those that
// no node could serve.
//
// Deadlines are longer than faults last: a read that is under way on a server that
// freezes is slow, and shows in the slowest read, but does not fail.
//
// # What the seed determines
//
// The sequence of faults, to the last step: which kind, of which standby (counted
// among those there are), for how long, with what beside it. And what each thread
// does by itself: its sessions' lengths and ways to carry, whether it reads or
// writes, which key, in what way, and to whom it hands its token.
//
// Not determined are times: how the threads and the faults interleave, how far each
// gets, and so how many steps a run has; which standby is promoted (the one that has
// received most); and when a token arrives, which makes a thread do something
// beside what it does by itself, drawn from a stream of its own. A run that broke
// something is repeated with its seed and breaks it again if the fault is not too
// rare; -only narrows it down to one kind of fault.
//
// # Controls
//
// With -mode dbresolver the same application runs over dbresolver alone, with -mode
// cached over what is often built by hand: the position of the last write, compared
// with the position of one replica that is asked for every 100 ms. The exit status
// is then 0 if violations were found: the faults are such that they show. Every
// excuse is granted to them.
//
// # Nothing stays behind
//
// On SIGINT and SIGTERM the servers are ended by package rywtest, after SIGKILL by
// its watchdog. Workers end when their standard input does, which only this process
// holds.
package main
