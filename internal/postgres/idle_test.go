package postgres_test

import (
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// TestIdleTransactionsEnd shows how long a process that froze in a transaction can keep its locks.
func TestIdleTransactionsEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	compiling, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, compiling, `
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$`)
	if err := compiling.Close(); err != nil {
		t.Error(err)
	}
	cases := []struct {
		name, url, want string
		options         []postgres.Option
	}{
		{"by default", url, "1min", nil},
		{"as the URL says", url + "&idle_in_transaction_session_timeout=5s", "5s", nil},
		{"behind a pooler", url, "0", []postgres.Option{postgres.WithoutStatements()}},
	}
	for _, c := range cases {
		db, err := postgres.Open(t.Context(), c.url, c.options...)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, pool := range []interface {
			Get(any, string, ...any) error
		}{db, db.Engine()} {
			var got string
			err := pool.Get(&got, `SHOW idle_in_transaction_session_timeout`)
			if err != nil || got != c.want {
				t.Errorf("%s the limit is %q (%v), want %q", c.name, got, err, c.want)
			}
			err = pool.Get(&got, `SHOW hash_mem_multiplier`)
			if pooled := c.options != nil; err != nil || (got == "8") == pooled {
				t.Errorf("%s a hash may take %q times as much (%v)", c.name, got, err)
			}
			if err := pool.Get(&got, `SHOW jit`); err != nil || got != "off" {
				t.Errorf("%s compiling is %q (%v)", c.name, got, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
