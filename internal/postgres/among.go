package postgres

import (
	"database/sql/driver"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

// Among is the condition that a column is one of the values, and what $1 is in it. Usually there is
// one, and then the planner does not see which: else it would make a new plan for each call,
// which takes ten times as long as to follow it.
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

// Value is what the column holds; nil is no NULL, but none.
func (u UIDs) Value() (driver.Value, error) { return pq.Array(append([]uuid.UUID{}, u...)).Value() }
