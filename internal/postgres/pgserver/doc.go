// Package pgserver runs a PostgreSQL server of its own, for development and tests. Production
// brings its own server and sets DATABASE_URL.
//
// A start goes through these steps, each in a file of its own:
//
//	lock.go          one process per folder; the refusal of others names it
//	home.go          where the cluster lives, and as whom it runs (never root)
//	evict.go         stops what a killed process left running there
//	installation.go  finds server programs, 14 or later
//	cluster.go       initdb, once, into place by a rename
//	process.go       the server runs and dies with us
//	temporary.go     throw-away servers for tests
//
// The server listens on a random port of 127.0.0.1 only and asks for a
// generated password, so that other users of the machine stay out.
//
// A process that dies by SIGKILL takes its server along: the kernel sends the
// server SIGQUIT, and the next start replays the write-ahead log. Should the
// server survive all the same, the next start stops it first.
package pgserver
