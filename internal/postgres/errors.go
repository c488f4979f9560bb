package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/lib/pq"
)

// The SQLSTATE codes that callers distinguish.
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

// IsNoRows reports whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// RowError converts the error of a query for one row: none if there was no row, else err wrapped
// with what was being done; nil for nil.
func RowError(err, none error, doing string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case IsNoRows(err):
		return none
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, args...), err)
}

// IsUnique reports whether err is a violation of the named unique constraint or
// unique index.
func IsUnique(err error, constraint string) bool { return violates(err, stateUnique, constraint) }

// IsForeignKey reports whether err is a violation of the named foreign key; an
// empty name means any.
func IsForeignKey(err error, constraint string) bool {
	return violates(err, stateForeignKey, constraint)
}

// IsLockTimeout reports whether a lock could not be obtained within lock_timeout.
func IsLockTimeout(err error) bool { return hasState(err, stateLockTimeout) }

// IsReadOnly reports whether the server refuses writes: it is a standby, or was set read-only.
func IsReadOnly(err error) bool { return hasState(err, stateReadOnly) }

// IsForbidden reports whether the database role lacks a privilege.
func IsForbidden(err error) bool { return hasState(err, stateForbidden) }

// IsTooManyConnections reports whether the server, the role or the database has reached its limit
// of connections.
func IsTooManyConnections(err error) bool { return hasState(err, stateTooMany) }

// IsMissing reports whether a statement names a table or a column that the schema does not have.
func IsMissing(err error) bool { return hasState(err, stateNoTable, stateNoColumn) }

// IsCancelled reports whether a statement or a transaction was ended early, by its context or by
// the server.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) ||
		hasState(err, stateCancelled)
}

// hasState reports whether the server returned one of the codes.
func hasState(err error, states ...string) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && slices.Contains(states, string(pqErr.Code))
}

func violates(err error, state, constraint string) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && string(pqErr.Code) == state && (constraint == "" || pqErr.Constraint == constraint)
}

// lacksPartition reports whether a row has no partition to go into. The server has no separate code
// for that: it is a check violation that names no constraint.
func lacksPartition(err error) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	return ok && pqErr.Code == stateCheck && pqErr.Constraint == "" &&
		pqErr.Routine == "ExecFindPartition"
}
