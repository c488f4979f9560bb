package postgres_test

import (
	"testing"
	"time"

	"drawbridge/internal/postgres/pgtest"
)

// TestMakePartitionsLocksNothingWithoutNeed runs while another process is stuck making partitions:
// a process that needs none does not wait for it.
func TestMakePartitionsLocksNothingWithoutNeed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	stuck, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stuck.Rollback() }()
	if _, err := stuck.ExecContext(t.Context(),
		`SELECT pg_advisory_xact_lock(hashtext('drawbridge_make_partitions'))`); err != nil {
		t.Fatal(err)
	}
	if made, err := db.MakePartitions(t.Context()); err != nil || made != 0 {
		t.Errorf("made %d, %v", made, err)
	}
	if err := stuck.Rollback(); err != nil {
		t.Fatal(err)
	}
	first := db.Now().UTC()
	db.Now = func() time.Time { return monthsAfter(first, 1) }
	if made, err := db.MakePartitions(t.Context()); err != nil || made != 3 {
		t.Errorf("a month later it made %d, %v, want one for each table", made, err)
	}
}

// TestPartitionsAreMadeLaterBesideADump: a transaction that reads a table for hours delays its
// partitions, which is an error only when one of them is needed now.
func TestPartitionsAreMadeLaterBesideADump(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dump.Rollback() }()
	if _, err := dump.ExecContext(t.Context(),
		`LOCK TABLE events, deliveries, attempts IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	first := db.Now().UTC()
	for _, test := range []struct {
		months int
		fails  bool
	}{{1, false}, {2, false}, {3, true}, {4, true}} {
		db.Now = func() time.Time { return monthsAfter(first, test.months) }
		if made, err := db.MakePartitions(t.Context()); made != 0 || (err != nil) != test.fails {
			t.Errorf("%d months later it made %d, %v", test.months, made, err)
		}
	}
	if err := dump.Rollback(); err != nil {
		t.Fatal(err)
	}
	if made, err := db.MakePartitions(t.Context()); err != nil || made != 12 {
		t.Errorf("after the dump it made %d, %v, want four for each table", made, err)
	}
}

// monthsAfter is in the middle of the month that comes that many months after another.
func monthsAfter(first time.Time, months int) time.Time {
	return time.Date(first.Year(), first.Month()+time.Month(months), 15, 12, 0, 0, 0, time.UTC)
}
