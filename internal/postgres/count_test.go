package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"drawbridge/internal/postgres/pgtest"
)

func TestCountEndsInTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.SetMaxOpenConns(1)
	backend := func() (pid int) {
		t.Helper()
		if err := db.GetContext(t.Context(), &pid, `SELECT pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := backend()
	const endless = `SELECT count(*) FROM generate_series(1, $1::bigint)`
	hasty, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if n, err := db.Count(hasty, endless, int64(1e15)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless count gave %d, %v", n, err)
	}
	if _, err := db.Count(hasty, endless, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a count after its deadline gave %v", err)
	}
	if after := backend(); after != before {
		t.Error("the connection was lost")
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, ctx := range map[string]context.Context{"none": t.Context(), "a minute": patient} {
		if n, err := db.Count(ctx, endless, 1204); n != 1204 || err != nil {
			t.Errorf("with %s of time: %d, %v", name, n, err)
		}
	}
	var limit string
	err := db.GetContext(t.Context(), &limit, `SHOW statement_timeout`)
	if err != nil || limit != "0" {
		t.Errorf("afterwards a statement may take %q, %v", limit, err)
	}
}
