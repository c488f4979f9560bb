package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Variable names the environment variable with the URL of the server to use.
const Variable = "DRAWBRIDGE_TEST_DATABASE_URL"

// patience bounds every wait of this package.
const patience = 2 * time.Minute

// server is where this process makes its databases.
type server struct {
	// admin is connected to the database that base names.
	admin *sql.DB
	base  *url.URL
	// templates are the names of the databases that are copied.
	templates map[template]string
	// clone is the end of the statement that copies a database.
	clone string
}

var theServer = sync.OnceValues(connect)

// New returns a pool on a migrated database that belongs to this test alone. The pool is closed and
// the database dropped when the test ends. It has only the partitions until next month and
// tomorrow: each connection loads every partition and its indexes, and tests make many connections.
func New(t testing.TB) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), database(t, near))
	if err != nil {
		t.Fatalf("opening the test's database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the test's database: %v", err)
		}
	})
	return db
}

// URL makes a migrated database that belongs to this test alone and returns its
// connection string, for processes that the test starts. The database is
// dropped when the test ends, connected or not. It is as the migrations leave it.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, whole)
}

// database makes a copy of a template.
func database(t testing.TB, of template) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("tests need a PostgreSQL server: %v", err)
	}
	name := databaseName(t.Name())
	clone := `CREATE DATABASE %s TEMPLATE %s` + s.clone
	if err := s.execute(t.Context(), clone, name, s.templates[of]); err != nil {
		t.Fatalf("making the test's database: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		err := s.execute(context.Background(), `DROP DATABASE %s WITH (FORCE)`, name)
		if err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return withDatabase(s.base, name)
}

// connect finds or starts the server and makes its template.
func connect() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	address := os.Getenv(Variable)
	if address == "" {
		// The next process that starts a server removes this one's folder.
		own, err := StartServer(ctx)
		if err != nil {
			return nil, err
		}
		address = own.URL()
	}
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "postgres" && base.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s must look like postgres://user:password@host:5432/name", Variable)
	}
	admin, err := sql.Open("postgres", address)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Variable, err)
	}
	// Making databases is disk work: more in parallel would not be faster.
	admin.SetMaxOpenConns(4)
	s := &server{admin: admin, base: base, templates: templateNames(time.Now())}
	if err := s.makeTemplates(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// execute runs a statement whose %s are identifiers.
func (s *server) execute(ctx context.Context, statement string, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.admin.ExecContext(ctx, quoted(statement, names...))
	return err
}

// quoted puts quoted identifiers into a statement, since database names cannot be parameters.
func quoted(statement string, names ...string) string {
	var all []any
	for _, name := range names {
		all = append(all, pq.QuoteIdentifier(name))
	}
	return fmt.Sprintf(statement, all...)
}

// databaseName is unique, and shows anyone who looks at the server which test the database belongs
// to.
func databaseName(test string) string {
	const most = 40 // of the 63 bytes that PostgreSQL keeps of a name
	plain := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	return plain[:min(len(plain), most)] + "_" + uuid.NewString()[:13]
}

func withDatabase(base *url.URL, name string) string {
	address := *base
	address.Path = "/" + name
	return address.String()
}
