package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pressly/goose/v3/lock"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestARunWaitsForAnother: it says so again and again, gives up for nothing but the end of its
// context, and migrates when the other one has ended.
func TestARunWaitsForAnother(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	connect := func() *sql.Conn {
		t.Helper()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	other, mine := connect(), connect()
	if _, err := other.ExecContext(t.Context(), `SELECT pg_advisory_lock($1)`,
		lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}
	// More than the 300 tries after which it gave up once.
	const notices = 301
	told := 0
	ctx, stop := context.WithCancelCause(t.Context())
	errStopped := errors.New("stopped")
	locker, err := migrations.LockerWith(time.Microsecond, 0,
		func(context.Context, time.Duration) {
			if told++; told == notices {
				stop(errStopped)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := locker.SessionLock(ctx, mine); !errors.Is(err, errStopped) &&
		!errors.Is(err, context.Canceled) || told < notices {
		t.Fatalf("it ended with %v after it had said %d times that it waits", err, told)
	}

	locker, err = migrations.LockerWith(time.Microsecond, 0,
		func(context.Context, time.Duration) {
			if _, err := other.ExecContext(t.Context(), `SELECT pg_advisory_unlock($1)`,
				lock.DefaultLockID); err != nil {
				t.Error(err)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	again := connect()
	if err := locker.SessionLock(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if err := locker.SessionUnlock(t.Context(), again); err != nil {
		t.Error(err)
	}
}
