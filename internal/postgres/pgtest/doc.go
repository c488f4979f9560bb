// Package pgtest gives each test a real database of its own.
//
// The migrations run once per server, in a template; each test gets a clone of
// it, which takes some tens of milliseconds and is dropped with the test. Tests
// may run in parallel, in any number of processes.
//
// The server is the one that DRAWBRIDGE_TEST_DATABASE_URL names, whose user must
// be allowed to create databases, else one that the process starts for itself.
// `make test` starts one server for all packages (cmd/withpostgres). A test
// without a server fails.
package pgtest
