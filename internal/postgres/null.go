package postgres

import (
	"database/sql"
	"time"

	"drawbridge/internal/lending"
)

// MaxPage is the largest limit of a list.
const MaxPage = 500

// CheckLimit returns VALIDATION_ERROR for a limit that no page can have.
func CheckLimit(limit int) error {
	if limit < 1 || limit > MaxPage {
		return lending.Invalid("limit", `"limit" must be from 1 to %d`, MaxPage)
	}
	return nil
}

// OrNull is nil, which is stored as NULL, for the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// OrZero is the zero value for NULL.
func OrZero[T any](value *T) T {
	if value == nil {
		var zero T
		return zero
	}
	return *value
}

// Micros is a duration in the microseconds that a column holds, NULL for none.
func Micros(d time.Duration) *int64 { return OrNull(d.Microseconds()) }

// Affected returns how many rows a statement changed, given its result and error.
func Affected(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	count, err := result.RowsAffected()
	return int(count), err
}
