package migrations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestSchemaComesBack takes every migration back, one by one, and applies them
// again: the schema is the same.
func TestSchemaComesBack(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // what it says is not this test's matter
	before, steps := describe(t, db), 0
	for name := "first"; name != ""; steps++ {
		var err error
		if name, err = migrations.Down(t.Context(), db.DB.DB); err != nil {
			t.Fatalf("after %d steps back: %v", steps, err)
		}
	}
	if steps < 20 {
		t.Errorf("only %d migrations were taken back", steps)
	}
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, describe(t, db)); diff != "" {
		t.Errorf("the schema differs from before:\n%s", diff)
	}
}

// describe is the schema: columns, constraints, indexes, triggers and functions.
func describe(t *testing.T, db *postgres.DB) []string {
	t.Helper()
	var lines []string
	err := db.SelectContext(t.Context(), &lines, `
		SELECT format('column %I.%I %s %s %s', table_name, column_name, data_type, is_nullable,
		              column_default)
		  FROM information_schema.columns
		 WHERE table_schema = 'public'
		UNION ALL
		SELECT format('constraint of %s: %s', conrelid::regclass, pg_get_constraintdef(oid))
		  FROM pg_constraint
		 WHERE connamespace = 'public'::regnamespace
		UNION ALL
		SELECT format('%s, valid: %s', pg_get_indexdef(indexrelid), indisvalid)
		  FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		 WHERE c.relnamespace = 'public'::regnamespace
		UNION ALL
		SELECT format('%s, enabled: %s', pg_get_triggerdef(oid), tgenabled)
		  FROM pg_trigger
		 WHERE NOT tgisinternal
		UNION ALL
		SELECT pg_get_functiondef(oid)
		  FROM pg_proc
		 WHERE pronamespace = 'public'::regnamespace
		 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestInterruptedIndexIsBuiltAgain: what a killed migration leaves is not valid,
// so that no query would ever use it.
func TestInterruptedIndexIsBuiltAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name := ""; name != "filters"; {
		var err error
		if name, err = migrations.Down(t.Context(), db.DB.DB); err != nil || name == "" {
			t.Fatalf("the migration of the indexes was not taken back (%v)", err)
		}
	}
	for _, statement := range []string{
		`CREATE INDEX audit_log_subject_alone ON audit_log (actor)`,
		`UPDATE pg_index SET indisvalid = false
		  WHERE indexrelid = 'audit_log_subject_alone'::regclass`,
		`CREATE INDEX disbursements_completing ON disbursements (application_uid)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
	var invalid []string
	err := db.SelectContext(t.Context(), &invalid, `
		SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid`)
	if err != nil || len(invalid) > 0 {
		t.Errorf("not valid are %v (%v)", invalid, err)
	}
	var definition string
	err = db.GetContext(t.Context(), &definition, `
		SELECT pg_get_indexdef('audit_log_subject_alone'::regclass)`)
	want := "CREATE INDEX audit_log_subject_alone ON public.audit_log " +
		"USING btree (subject, entry_id DESC)"
	if err != nil || definition != want {
		t.Errorf("the interrupted index is %q (%v), want %q", definition, err, want)
	}
	var whole bool
	err = db.GetContext(t.Context(), &whole, `
		SELECT indpred IS NULL FROM pg_index
		 WHERE indexrelid = 'disbursements_completing'::regclass`)
	if err != nil || !whole {
		t.Errorf("an index that was there and valid was made again (%v)", err)
	}
}
