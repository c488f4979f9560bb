package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/internal/postgres/pgtest"
)

// TestCommitAlone commits on a server whose synchronous standby is away, in each possible way: the
// server reports success once it is asked to wait no longer, but the client must not.
func TestCommitAlone(t *testing.T) {
	t.Parallel()
	address := alone(t)
	for name, options := range map[string][]postgres.Option{
		"prepared": nil, "unprepared": {postgres.WithoutStatements()},
	} {
		db, err := postgres.Open(t.Context(), address, options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		const insert = `INSERT INTO kept VALUES ($1) RETURNING word`
		for way, write := range map[string]func(ctx context.Context) error{
			"in a transaction": func(ctx context.Context) error {
				return db.InTx(ctx, func(tx *postgres.Tx) error {
					_, err := tx.ExecContext(ctx, insert, "one")
					return err
				})
			},
			"by a statement": func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, insert, "two")
				return err
			},
			"by a query": func(ctx context.Context) error {
				var words []string
				return db.SelectContext(ctx, &words, insert, "three")
			},
		} {
			ctx, cancel := postgres.WithWaitBudget(t.Context(), time.Second)
			if err := write(ctx); !postgres.IsUnavailable(err) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v, want that the database cannot be used", name, way, err)
			}
			cancel()
		}
	}
}

// alone starts a server that waits at each commit for a standby that does not exist.
func alone(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "drawbridge-alone-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	start := func() *pgserver.Server {
		server, err := pgserver.Start(t.Context(), pgserver.Options{Dir: folder})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server := start()
	for _, statement := range []string{
		`CREATE TABLE kept (word text)`, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`,
	} {
		db, err := postgres.Open(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), statement)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server = start()
	t.Cleanup(func() {
		data := server.Folder()
		if err := errors.Join(server.Stop(), os.RemoveAll(data)); err != nil {
			t.Error(err)
		}
	})
	return server.URL()
}

// unwritable returns the error of opening two hosts that both refuse writes.
func unwritable(t *testing.T) error {
	t.Helper()
	db := pgtest.New(t)
	address, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	_, err = db.ExecContext(t.Context(),
		`ALTER DATABASE "`+name+`" SET default_transaction_read_only = on`)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("host", address.Hostname()+","+address.Hostname())
	query.Set("port", address.Port()+","+address.Port())
	query.Set("target_session_attrs", "read-write")
	address.Host, address.RawQuery = "", query.Encode()
	if db, err = postgres.Open(t.Context(), address.String()); err == nil {
		_ = db.Close()
		t.Fatal("a server that lets nobody write was taken for one to write to")
	}
	return err
}
