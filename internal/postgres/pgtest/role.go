package pgtest

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Role makes a role for this test, which owns nothing and may read and write everything, and
// returns its name and the URL of the database for it. Attributes are those of CREATE ROLE.
func Role(t testing.TB, db *postgres.DB, attributes string) (name, address string) {
	t.Helper()
	name = "role_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	const password = "p"
	_, err := db.ExecContext(t.Context(), `
		CREATE ROLE `+name+` LOGIN PASSWORD '`+password+`' `+attributes+`;
		GRANT pg_read_all_data, pg_write_all_data TO `+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // roles belong to the server, which others keep using
		conn, err := db.Connx(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		// A test may have turned writing off.
		for _, statement := range []string{
			`SET default_transaction_read_only = off`, `DROP ROLE ` + name,
		} {
			if _, err := conn.ExecContext(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	parsed, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(name, password)
	return name, parsed.String()
}
