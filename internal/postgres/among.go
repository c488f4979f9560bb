package postgres

import (
	"database/sql/driver"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

// Among returns the condition that a column is one of the values, and the argument for its $1. A
// single value, the usual case, goes into a subquery that hides it from the planner, which would
// otherwise make a new plan for each call; that takes ten times as long as running one.
func Among[T uuid.UUID | int64](values []T) (condition string, argument any) {
	kind := "uuid"
	if _, numbers := any(values).([]int64); numbers {
		kind = "bigint"
	}
	if len(values) == 1 {
		return ` = (SELECT $1::` + kind + `) `, values[0]
	}
	return ` = ANY ($1::` + kind + `[]) `, pq.Array(values)
}

// UIDs is a column of type uuid[].
type UIDs []uuid.UUID

// Scan reads the column.
func (u *UIDs) Scan(column any) error { return pq.Array((*[]uuid.UUID)(u)).Scan(column) }

// Value returns the array to store: nil is stored as an empty array, not as NULL.
func (u UIDs) Value() (driver.Value, error) { return pq.Array(append([]uuid.UUID{}, u...)).Value() }
