// Package local is the back-end that runs servers as processes of this machine.
//
// Every server is a child of the test process, in a process group of its own,
// listening on 127.0.0.1 and on a unix socket in a folder of its own. Data
// directories are copies of a template that is made once per PostgreSQL version
// and kept in a cache. Linux and macOS are supported.
package local
