package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

func TestUnwritableSaysWhy(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	want := func(step, part string) {
		t.Helper()
		got, err := db.Unwritable(t.Context())
		if err != nil || part == "" && got != "" || !strings.Contains(got, part) {
			t.Errorf("%s: %q, %v; want %q", step, got, err, part)
		}
	}
	run := func(statement string) error {
		_, err := db.ExecContext(t.Context(), statement)
		return err
	}
	want("a new database", "")

	// A full disk is reported after a statement ran into it, until there is room again.
	if run(`DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`) == nil {
		t.Fatal("the statement met no full disk")
	}
	for _, statement := range []string{
		`CREATE FUNCTION meet_full_disk() RETURNS event_trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`,
		`CREATE EVENT TRIGGER full_disk ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS')
			EXECUTE FUNCTION meet_full_disk()`,
	} {
		if err := run(statement); err != nil {
			t.Fatal(err)
		}
	}
	want("the disk is full", "disk of the database is full")
	want("the disk is still full", "disk of the database is full")
	if err := run(`DROP EVENT TRIGGER full_disk`); err != nil {
		t.Fatal(err)
	}
	want("there is room again", "")

	var name string
	if err := db.GetContext(t.Context(), &name, `SELECT current_database()`); err != nil {
		t.Fatal(err)
	}
	if err := run(`ALTER DATABASE "` + name + `" SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.Open(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	era := db.Era()
	want("a server that lets nobody write", "can only be read")
	if db.Era() == era {
		t.Error("its connections are kept")
	}
}

// A transaction requests nothing that the server does not grant by itself: on a server that refuses
// writes it changes nothing, and its connection is not kept.
func TestTransactionsObeyAReadOnlyServer(t *testing.T) {
	t.Parallel()
	fresh := pgtest.New(t)
	_, err := fresh.ExecContext(t.Context(), `DO $$ BEGIN EXECUTE format(
		'ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]postgres.Option{
		"prepared": nil, "unprepared": {postgres.WithoutStatements()},
	} {
		db, err := postgres.Open(t.Context(), fresh.URL(), options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		era := db.Era()
		err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO partners VALUES ($1)`, uuid.New())
			return err
		})
		if !postgres.IsUnavailable(err) || db.Era() == era {
			t.Errorf("%s: %v, connections kept: %v", name, err, db.Era() == era)
		}
	}
}

// A transaction with a failed statement does not commit, even if the caller ignores the error.
func TestNoCommitAfterAFailure(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		_, _ = tx.ExecContext(t.Context(), `SELECT 1 / 0`)
		return nil
	})
	if !errors.Is(err, pq.ErrInFailedTransaction) {
		t.Errorf("the commit after a statement that failed: %v", err)
	}
	var one int
	if err := db.GetContext(t.Context(), &one, `SELECT 1`); err != nil || one != 1 {
		t.Errorf("afterwards: %d, %v", one, err)
	}
}

// A deadlock at the commit has rolled everything back: the transaction is tried again, and never
// reported as perhaps committed.
func TestDeadlockAtTheCommit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Exec(t, db, `CREATE TABLE crossed (n int)`)
	pgtest.Exec(t, db, `CREATE FUNCTION cross_locks() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'deadlock detected' USING ERRCODE = '40P01'; END $$`)
	pgtest.Exec(t, db, `CREATE CONSTRAINT TRIGGER crosses AFTER INSERT ON crossed
		INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cross_locks()`)
	tries := 0
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		tries++
		_, err := tx.ExecContext(t.Context(), `INSERT INTO crossed VALUES (1)`)
		return err
	})
	if tries != 4 || !postgres.IsUnavailable(err) ||
		strings.Contains(err.Error(), "may have taken effect") {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
