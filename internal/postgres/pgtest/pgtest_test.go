package pgtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

func names(t *testing.T, db *postgres.DB, query string, arguments ...any) []string {
	t.Helper()
	var found []string
	if err := db.SelectContext(t.Context(), &found, query, arguments...); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	const tests = 12
	var mutex sync.Mutex
	seen := map[string]bool{}
	t.Run("at once", func(t *testing.T) {
		for i := range tests {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t)
				// A clone shared with another test would have the table.
				if _, err := db.ExecContext(t.Context(), `CREATE TABLE mine ()`); err != nil {
					t.Error(err)
				}
				const schema = `SELECT tablename FROM pg_tables
					WHERE tablename IN ('deliveries', 'river_job')`
				if got := names(t, db, schema); len(got) != 2 {
					t.Errorf("of the tables deliveries and river_job there are %v", got)
				}
				mutex.Lock()
				defer mutex.Unlock()
				seen[names(t, db, `SELECT current_database()`)[0]] = true
			})
		}
	})
	if len(seen) != tests {
		t.Errorf("%d tests had %d databases", tests, len(seen))
	}
	left := names(t, pgtest.New(t), `SELECT datname FROM pg_database`)
	for _, name := range left {
		if seen[name] {
			t.Errorf("database %s outlived its test", name)
		}
	}
}

func TestURLIsOfTheTestsOwnDatabase(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	name := names(t, db, `SELECT current_database()`)[0]
	if !strings.HasPrefix(name, "testurlisofthetestsowndatabase_") {
		t.Errorf("the database is called %s", name)
	}
}

// TestInAnotherProcess is what each process of TestManyProcesses runs.
func TestInAnotherProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if got := names(t, db, `SELECT tablename FROM pg_tables WHERE tablename = 'mine'`); len(got) > 0 {
		t.Errorf("the database is not new: it has %v", got)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE mine ()`); err != nil {
		t.Error(err)
	}
}

// Test processes that start together must agree on the templates.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	server, err := pgtest.StartServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	var processes sync.WaitGroup
	for range 4 {
		processes.Go(func() {
			if output, err := runOn(t, server.URL()); err != nil {
				t.Errorf("%v:\n%s", err, output)
			}
		})
	}
	processes.Wait()
	db, err := postgres.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	const query = `SELECT datname FROM pg_database
		WHERE datname NOT IN ('postgres', 'drawbridge', 'template0', 'template1')`
	left := names(t, db, query)
	if len(left) != 2 || !strings.HasPrefix(left[0], "drawbridge_template_") {
		t.Errorf("the processes left %v, want the two templates", left)
	}
}

// A missing server must fail the run: a skip would look like success.
func TestMissingServerFails(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"no server": "postgres://nobody:nothing@127.0.0.1:1/none?sslmode=disable",
		"not a URL": "127.0.0.1",
	}
	for name, address := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := runOn(t, address)
			if err == nil || !strings.Contains(output, "tests need a PostgreSQL server") {
				t.Errorf("got %v:\n%s", err, output)
			}
			if strings.Contains(output, "nothing") {
				t.Errorf("the message shows the password:\n%s", output)
			}
		})
	}
}

// runOn runs TestInAnotherProcess in a separate process.
func runOn(t *testing.T, address string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInAnotherProcess$")
	command.Env = append(os.Environ(), pgtest.Variable+"="+address)
	output, err := command.CombinedOutput()
	return string(output), err
}

// BenchmarkNew measures what a database for each test costs.
func BenchmarkNew(b *testing.B) {
	pgtest.URL(b) // starts the server and makes the template
	for b.Loop() {
		pgtest.URL(b)
	}
}
