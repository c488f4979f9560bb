package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

const doubled = `SELECT $1::integer * 2`

// oneConnection is a database of the test's own with a pool of a single
// connection, so that the test knows where its statements run.
func oneConnection(t *testing.T, choices ...postgres.Option) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), pgtest.URL(t), choices...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	return db
}

// prepared lists the prepared statements of the connection.
func prepared(t *testing.T, db *postgres.DB) []string {
	t.Helper()
	var texts []string
	err := db.Select(&texts, `SELECT statement FROM pg_prepared_statements ORDER BY prepare_time`)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestStatementIsPreparedOncePerConnection(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	for i := range 3 {
		var got int
		if err := db.Get(&got, doubled, i); err != nil || got != 2*i {
			t.Errorf("got %d, %v, want %d", got, err, 2*i)
		}
	}
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		_, err := tx.Exec(doubled, 4)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if texts := prepared(t, db); len(texts) != 1 || texts[0] != doubled {
		t.Errorf("the connection holds %q, want the one statement", texts)
	}
}

// TestStatementsArePreparedAgain: the server's choice of a plan for a new statement is not final.
func TestStatementsArePreparedAgain(t *testing.T) {
	t.Parallel()
	db := oneConnection(t, postgres.WithStatementLife(time.Nanosecond))
	const uses = 6
	for i := range uses {
		var got int
		if err := db.Get(&got, doubled, i); err != nil || got != 2*i {
			t.Errorf("got %d, %v, want %d", got, err, 2*i)
		}
		err := db.Get(&got, `
			SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement = '`+
			doubled+`'`)
		if err != nil || got != 1 {
			t.Errorf("after use %d the server has planned it %d times, %v, want once", i, got, err)
		}
	}
	if texts := prepared(t, db); len(texts) != 1 {
		t.Errorf("the connection holds %q, want the one statement", texts)
	}
}

func TestWithoutStatementsNothingIsPrepared(t *testing.T) {
	t.Parallel()
	db := oneConnection(t, postgres.WithoutStatements())
	if db.Engine() != db.DB {
		t.Error("the engine has a pool with settings of its own")
	}
	for range 2 {
		var got int
		if err := db.Get(&got, doubled, 21); err != nil || got != 42 {
			t.Errorf("got %d, %v, want 42", got, err)
		}
	}
	if texts := prepared(t, db); len(texts) != 0 {
		t.Errorf("the connection holds %q, want nothing", texts)
	}
}

// A connection keeps a bounded number of statements, the most recently used.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	const many = 400
	for i := range many {
		text := fmt.Sprintf(`SELECT $1::integer + %d`, i)
		var got int
		if err := db.Get(&got, text, 1); err != nil || got != i+1 {
			t.Fatalf("statement %d: got %d, %v", i, got, err)
		}
		if err := db.Get(&got, doubled, 21); err != nil {
			t.Fatal(err)
		}
	}
	texts := prepared(t, db)
	if len(texts) < 50 || len(texts) > 200 {
		t.Errorf("the connection holds %d statements", len(texts))
	}
	if texts[0] != doubled {
		t.Errorf("of what was prepared first %q is left, want the one in steady use", texts[0])
	}
	if last := fmt.Sprintf(`SELECT $1::integer + %d`, many-1); texts[len(texts)-1] != last {
		t.Errorf("the newest is %q, want %q", texts[len(texts)-1], last)
	}
}

func TestStatementsServeManyGoroutines(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var group sync.WaitGroup
	for i := range 40 { // more than there are connections
		group.Go(func() {
			for range 5 {
				var got, inTx int
				if err := db.Get(&got, doubled, i); err != nil || got != 2*i {
					t.Errorf("got %d, %v, want %d", got, err, 2*i)
				}
				err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
					return tx.Get(&inTx, doubled, i)
				})
				if err != nil || inTx != 2*i {
					t.Errorf("in a transaction got %d, %v, want %d", inTx, err, 2*i)
				}
			}
		})
	}
	group.Wait()
}

// TestStatementsFollowTheSchema changes a table under statements that several connections keep, as
// a migration does while a process runs.
func TestStatementsFollowTheSchema(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]func(db *postgres.DB) (string, error){
		"outside a transaction": func(db *postgres.DB) (string, error) {
			return readThing(t, db)
		},
		"in a transaction": func(db *postgres.DB) (read string, err error) {
			err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
				read, err = readThing(t, tx)
				return err
			})
			return read, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			if _, err := db.Exec(`CREATE TABLE things AS SELECT 1 AS uid`); err != nil {
				t.Fatal(err)
			}
			onConnections(t, db, 6, func() {
				if got, err := query(db); err != nil || got != "map[uid:1]" {
					t.Errorf("before: %s, %v", got, err)
				}
			})
			_, err := db.Exec(`ALTER TABLE things ADD COLUMN name text DEFAULT 'new'`)
			if err != nil {
				t.Fatal(err)
			}
			onConnections(t, db, 6, func() {
				if got, err := query(db); err != nil || got != "map[name:new uid:1]" {
					t.Errorf("after: %s, %v", got, err)
				}
			})
		})
	}
}

// readThing reads whatever columns the table has.
func readThing(t *testing.T, from interface {
	QueryRowxContext(ctx context.Context, query string, args ...any) *sqlx.Row
},
) (string, error) {
	t.Helper()
	found := map[string]any{}
	//nolint:unqueryvet // the columns are what changes
	row := from.QueryRowxContext(t.Context(), `SELECT * FROM things WHERE uid = $1`, 1)
	err := row.MapScan(found)
	return fmt.Sprint(found), err
}

// onConnections runs do n times concurrently, each on its own connection.
func onConnections(t *testing.T, db *postgres.DB, n int, do func()) {
	t.Helper()
	var group sync.WaitGroup
	var together sync.WaitGroup
	together.Add(n)
	for range n {
		group.Go(func() {
			// Each holds a connection until all have one, so that the pool opens as many.
			conn, err := db.Conn(t.Context())
			together.Done()
			if err != nil {
				t.Error(err)
				return
			}
			together.Wait()
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			for range 5 {
				do()
			}
		})
	}
	group.Wait()
}

// Someone else, such as a pooler, may deallocate a statement that a connection keeps.
func TestStatementOutlivesItsDeallocation(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	for range 2 {
		var got int
		if err := db.Get(&got, doubled, 21); err != nil || got != 42 {
			t.Errorf("got %d, %v, want 42", got, err)
		}
		if _, err := db.Exec(`DEALLOCATE ALL`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatementOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	const query = `SELECT pg_backend_pid() + $1::integer`
	var first, second int
	if err := db.Get(&first, query, 0); err != nil {
		t.Fatal(err)
	}
	// The connection terminates itself; the pool opens another one.
	if _, err := db.Exec(`SELECT pg_terminate_backend(pg_backend_pid())`); err == nil {
		t.Fatal("the connection survived its own end")
	}
	if err := db.Get(&second, query, 0); err != nil || second == first {
		t.Errorf("backend %d, %v, want another than %d", second, err, first)
	}
}

func TestFailedStatementIsNotKept(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	const query = `SELECT count(*) FROM made_later WHERE $1::integer = 1`
	var got int
	if err := db.Get(&got, query, 1); err == nil {
		t.Fatal("a table that does not exist was counted")
	}
	if _, err := db.Exec(`CREATE TABLE made_later ()`); err != nil {
		t.Fatal(err)
	}
	if err := db.Get(&got, query, 1); err != nil {
		t.Errorf("once the table exists: %v", err)
	}
}

// A statement that fails, or runs in a transaction in which another has failed, does no harm to the
// connection and its kept statements.
func TestStatementsAfterAnAbortedTransaction(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	const divide = `SELECT 84 / $1::integer`
	for range 2 {
		err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
			var got int
			if err := tx.Get(&got, divide, 0); err == nil {
				t.Error("84 was divided by 0")
			}
			// Unknown to the connection in the first round, kept in the second.
			err := tx.Get(&got, doubled, 21)
			if pqErr, ok := errors.AsType[*pq.Error](err); !ok || pqErr.Code != "25P02" {
				t.Errorf("in the failed transaction: %v", err)
			}
			return err
		})
		if err == nil {
			t.Error("the failed transaction was committed")
		}
		var got int
		if err := db.Get(&got, divide, 2); err != nil || got != 42 {
			t.Errorf("got %d, %v, want 42", got, err)
		}
		if err := db.Get(&got, doubled, 21); err != nil || got != 42 {
			t.Errorf("got %d, %v, want 42", got, err)
		}
	}
}

// TestCancelledStatement ends a context while a kept statement runs: the call returns at once, and
// the cancellation does not hit a later statement.
func TestCancelledStatement(t *testing.T) {
	t.Parallel()
	db := oneConnection(t)
	const query = `SELECT pg_backend_pid() FROM pg_sleep($1)`
	var before, after int
	if err := db.Get(&before, query, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	var got int
	if err := db.GetContext(ctx, &got, query, 60); err == nil {
		t.Error("a minute passed in no time")
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the caller waited %s", took)
	}
	for range 20 {
		if err := db.Get(&after, query, 0); err != nil {
			t.Fatal(err)
		}
	}
	if after == before {
		t.Error("a connection with a cancellation under way was used again")
	}
}

// TestEnginePlansByIndex shows the purpose of the engine's connections: a plan that was made while
// the table was empty must serve when it is large.
func TestEnginePlansByIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Exec(`CREATE TABLE things (uid integer PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	var plan []string
	err := db.Engine().Select(&plan, `
		EXPLAIN SELECT uid FROM things JOIN unnest(ARRAY[1]) AS u (uid) USING (uid)`)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(plan); !strings.Contains(text, "Nested Loop") ||
		!strings.Contains(text, "Index") {
		t.Errorf("planned %s", text)
	}
	var mode string
	if err := db.Get(&mode, `SHOW plan_cache_mode`); err != nil || mode != "auto" {
		t.Errorf("everybody's plans are made in the mode %q, %v", mode, err)
	}
}
