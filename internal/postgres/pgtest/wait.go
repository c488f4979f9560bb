package pgtest

import (
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// WaitForLock waits until a statement is blocked by another transaction of the database.
func WaitForLock(t testing.TB, db *postgres.DB) {
	t.Helper()
	waittest.Until(t, "a statement waits for a lock", func() bool {
		var waits bool
		err := db.GetContext(t.Context(), &waits, `
			SELECT EXISTS (
			    SELECT FROM pg_stat_activity
			     WHERE datname = current_database()
			       AND wait_event_type = 'Lock')`)
		if err != nil {
			t.Fatal(err)
		}
		return waits
	})
}
