package postgres

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/lib/pq"
)

// ConnectionError is why a connection to the server broke or could not be made, as opposed to an
// error that the server returned for a statement.
type ConnectionError struct{ cause error }

// Error returns the text of the cause.
func (e *ConnectionError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *ConnectionError) Unwrap() error { return e.cause }

// connectionError marks an error of the driver that is about the connection, not a statement.
func connectionError(err error) error {
	if err == nil {
		return nil
	}
	if _, answered := errors.AsType[*pq.Error](err); answered {
		return err
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &ConnectionError{err}
	}
	return err
}

// IsUnavailable reports whether err is about the database as such and not about the statement: it
// is away, hangs, refuses more connections, has no room, refuses writes, gave up waiting for a
// lock, or ended a transaction because of a conflict with others more often than InTx tries again.
func IsUnavailable(err error) bool {
	if _, broken := errors.AsType[*ConnectionError](err); broken {
		return true
	}
	pqErr, answered := errors.AsType[*pq.Error](err)
	if !answered {
		return errors.Is(err, ErrOutOfTime) || errors.Is(err, sql.ErrConnDone)
	}
	switch pqErr.Code.Class() {
	case "08", // the connection
		"40", // conflicting transactions
		"53", // room, memory, connections
		"57", // an operator steps in, the server stops or starts
		"58": // the machine
		return true
	}
	return IsLockTimeout(err) || IsReadOnly(err)
}
