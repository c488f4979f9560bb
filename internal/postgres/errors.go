package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/lib/pq"
)

// The SQLSTATE codes that callers tell apart.
const (
	stateUnique        = "23505"
	stateForeignKey    = "23503"
	stateSerialization = "40001"
	stateDeadlock      = "40P01"
	stateUnsupported   = "0A000"
	stateNoStatement   = "26000"
	stateForbidden     = "42501"
	stateLockTimeout   = "55P03"
	stateCancelled     = "57014"
	stateCheck         = "23514"
	stateReadOnly      = "25006"
	stateDiskFull      = "53100"
	stateTooMany       = "53300"
	stateNoTable       = "42P01"
	stateNoColumn      = "42703"
)

// IsNoRows tells whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// RowError is the error of a query for one row: none where there was no row, and else what failed
// while something was being done; nil for nil.
func RowError(err, none error, doing string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case IsNoRows(err):
		return none
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, args...), err)
}

// IsUnique tells whether err is a violation of the named unique constraint or
// unique index.
func IsUnique(err error, constraint string) bool { return violates(err, stateUnique, constraint) }

// IsForeignKey tells whether err is a violation of the named foreign key; an
// empty name means any.
func IsForeignKey(err error, constraint string) bool {
	return violates(err, stateForeignKey, constraint)
}

// IsLockTimeout tells whether a lock was not to be had within lock_timeout.
func IsLockTimeout(err error) bool { return hasState(err, stateLockTimeout) }

// IsReadOnly tells whether the server lets nobody write: it is a standby, or was set so.
func IsReadOnly(err error) bool { return hasState(err, stateReadOnly) }

// IsForbidden tells whether the database role lacks a privilege.
func IsForbidden(err error) bool { return hasState(err, stateForbidden) }

// IsTooManyConnections tells whether the server has all the connections that it, the role or the
// database may have.
func IsTooManyConnections(err error) bool { return hasState(err, stateTooMany) }

// IsMissing tells whether a statement names a table or a column that the schema does not have.
func IsMissing(err error) bool { return hasState(err, stateNoTable, stateNoColumn) }

// IsCancelled tells whether a statement or a transaction was ended before its time: because its
// context was, or by the server.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) ||
		hasState(err, stateCancelled)
}

// hasState tells whether the server answered with one of the codes.
func hasState(err error, states ...string) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && slices.Contains(states, string(pqErr.Code))
}

func violates(err error, state, constraint string) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && string(pqErr.Code) == state && (constraint == "" || pqErr.Constraint == constraint)
}

// lacksPartition tells whether a row has no partition to go into. The server has no
// code of its own for that, but no constraint is violated.
func lacksPartition(err error) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && pqErr.Code == stateCheck && pqErr.Constraint == "" &&
		pqErr.Routine == "ExecFindPartition"
}
