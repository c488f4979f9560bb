package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

const doubled = `SELECT $1::integer * 2`

func TestStatementServesPoolAndTransactions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var statement postgres.Statement
	var group sync.WaitGroup
	for i := range 40 { // more than there are connections
		group.Go(func() {
			prepared, err := statement.Prepare(t.Context(), db, doubled)
			if err != nil {
				t.Errorf("preparing: %v", err)
				return
			}
			var got, inTx int
			if err := prepared.GetContext(t.Context(), &got, i); err != nil || got != 2*i {
				t.Errorf("got %d, %v, want %d", got, err, 2*i)
			}
			err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
				return tx.StmtxContext(t.Context(), prepared).GetContext(t.Context(), &inTx, i)
			})
			if err != nil || inTx != 2*i {
				t.Errorf("in a transaction got %d, %v, want %d", inTx, err, 2*i)
			}
		})
	}
	group.Wait()
}

func TestStatementIsPreparedOncePerConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.SetMaxOpenConns(1)
	var statement postgres.Statement
	for range 3 {
		prepared, err := statement.Prepare(t.Context(), db, doubled)
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := prepared.Get(&got, 21); err != nil || got != 42 {
			t.Errorf("got %d, %v, want 42", got, err)
		}
	}
	var texts []string
	if err := db.Select(&texts, `SELECT statement FROM pg_prepared_statements`); err != nil {
		t.Fatal(err)
	}
	if len(texts) != 1 || texts[0] != doubled {
		t.Errorf("the connection holds %q, want the one statement", texts)
	}
}

func TestStatementOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.SetMaxOpenConns(1)
	var statement postgres.Statement
	prepared, err := statement.Prepare(t.Context(), db, `SELECT pg_backend_pid() + $1::integer`)
	if err != nil {
		t.Fatal(err)
	}
	var first, second int
	if err := prepared.Get(&first, 0); err != nil {
		t.Fatal(err)
	}
	// The connection is cut by itself; the pool opens another one.
	if _, err := db.Exec(`SELECT pg_terminate_backend(pg_backend_pid())`); err == nil {
		t.Fatal("the connection survived its own end")
	}
	if err := prepared.Get(&second, 0); err != nil || second == first {
		t.Errorf("backend %d, %v, want another than %d", second, err, first)
	}
}

func TestFailedPreparationIsNotRemembered(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var statement postgres.Statement
	const query = `SELECT count(*) FROM made_later`
	if _, err := statement.Prepare(t.Context(), db, query); err == nil ||
		!strings.HasPrefix(err.Error(), "preparing a statement: ") {
		t.Fatalf("got %v, want an error that says what failed", err)
	}
	if _, err := db.Exec(`CREATE TABLE made_later ()`); err != nil {
		t.Fatal(err)
	}
	if _, err := statement.Prepare(t.Context(), db, query); err != nil {
		t.Errorf("once the table exists: %v", err)
	}
}
