package postgres_test

import (
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// TestServerIsNoPooler must pass with and without kept statements. The tests with PgBouncer show
// what a pooler that lends connections looks like.
func TestServerIsNoPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for _, options := range [][]postgres.Option{nil, {postgres.WithoutStatements()}} {
		db, err := postgres.Open(t.Context(), url, options...)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // the pool's connections, old and new
			if err := db.CheckPooling(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
