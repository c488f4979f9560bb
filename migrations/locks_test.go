package migrations_test

import (
	"context"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// lockOrder is the order in which migrations lock the tables that the service
// writes: that in which its calls come to them.
var lockOrder = []string{
	"installation", "applications", "loans", "disbursements", "tasks", "events", "deliveries",
	"attempts", "emails", "email_attempts", "idempotency_keys", "river_job", "subscriptions",
	"subscription_versions", "partners", "merchants", "clients", "client_uploads", "users",
	"audit_log",
}

// firstRelease is the newest migration of the first release, which met no load.
const firstRelease = "0007"

var leadingLock = regexp.MustCompile(`^LOCK TABLE ([a-z_, ]+) IN [A-Z ]+ MODE;\s*`)

// TestMigrationsLockInOrder runs each migration and looks at its locks: one that
// keeps writers off several tables takes all of these locks before anything else,
// in the one order.
func TestMigrationsLockInOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for {
		name, err := migrations.Down(t.Context(), db.DB.DB)
		if err != nil {
			t.Fatal(err)
		}
		if name == "" || name[:4] <= firstRelease {
			break
		}
		if !slices.Contains(files, name) {
			continue
		}
		seen++
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		head, body, found := strings.Cut(up, "-- +goose Up\n")
		if !found || strings.Contains(head, "NO TRANSACTION") {
			continue // one statement after the other holds its locks alone
		}
		first, all := locks(t, db, leading(t, name, body)), locks(t, db, body)
		if len(tablesOf(all)) < 2 {
			continue
		}
		if diff := cmp.Diff(all, first); diff != "" {
			t.Errorf("%s does not begin by locking all that it locks (-all +first):\n%s", name, diff)
		}
	}
	if seen < 15 {
		t.Errorf("only %d migrations were looked at", seen)
	}
}

// leading are the LOCK statements that a migration begins with; their tables must
// come in order.
func leading(t *testing.T, name, body string) string {
	t.Helper()
	var statements strings.Builder
	last := -1
	for {
		found := leadingLock.FindStringSubmatch(body)
		if found == nil {
			return statements.String()
		}
		for table := range strings.SplitSeq(found[1], ", ") {
			place := slices.Index(lockOrder, table)
			if place <= last {
				t.Errorf("%s locks %s out of order; the order is %v", name, table, lockOrder)
			}
			last = place
		}
		statements.WriteString(found[0])
		body = body[len(found[0]):]
	}
}

// locks are the locks that statements take against writers, each with its table.
func locks(t *testing.T, db *postgres.DB, statements string) []string {
	t.Helper()
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `
		CREATE TEMPORARY TABLE before ON COMMIT DROP AS SELECT oid FROM pg_class`); err != nil {
		t.Fatal(err)
	}
	if statements != "" {
		if _, err := tx.ExecContext(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	return held(t, tx)
}

func held(t *testing.T, tx *sqlx.Tx) []string {
	t.Helper()
	var found []string
	err := tx.SelectContext(t.Context(), &found, `
		SELECT relname || ' ' || (array_agg(mode ORDER BY array_position(ARRAY[
		           'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'], mode)
		           DESC))[1]
		  FROM pg_locks JOIN pg_class ON pg_class.oid = relation
		 WHERE pid = pg_backend_pid() AND relkind IN ('r', 'p') AND NOT relispartition
		   AND relnamespace = 'public'::regnamespace AND pg_class.oid IN (SELECT oid FROM before)
		   AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		 GROUP BY relname
		 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func tablesOf(locks []string) []string {
	var tables []string
	for _, lock := range locks {
		table, _, _ := strings.Cut(lock, " ")
		tables = append(tables, table)
	}
	return slices.Compact(tables)
}

// TestMigrationGivesWay: beside a transaction that goes on and on, a migration
// waits for its lock in short tries, lets the service's statements through between
// them, and is done once the transaction has ended.
func TestMigrationGivesWay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name := ""; !strings.HasPrefix(name, "0022"); {
		var err error
		if name, err = migrations.Down(t.Context(), db.DB.DB); err != nil || name == "" {
			t.Fatalf("migration 22 was not taken back (%v)", err)
		}
	}
	reader, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ExecContext(t.Context(), `SELECT FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- migrations.Up(t.Context(), db.DB.DB) }()
	pgtest.WaitForLock(t, db)
	// Would wait for the reader's end, did the migration not give way.
	call, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := db.ExecContext(call, `DELETE FROM deliveries WHERE false`); err != nil {
		t.Errorf("a call behind the migration: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("beside the transaction the migration ended with %v", err)
	default:
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("afterwards it ended with %v", err)
	}
}
