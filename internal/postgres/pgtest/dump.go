package pgtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Content is the content of tables: a digest of all rows by table name.
type Content map[string]string

// Dump digests every table of the schema except the named ones.
func Dump(t testing.TB, db *postgres.DB, except ...string) Content {
	t.Helper()
	var tables []string
	err := db.SelectContext(t.Context(), &tables, `
		SELECT relname FROM pg_class
		 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
		   AND NOT relispartition AND relname <> ALL ($1)`, pq.Array(except))
	if err != nil {
		t.Fatalf("listing the tables: %v", err)
	}
	var each []string
	for _, table := range tables {
		each = append(each, fmt.Sprintf(`
			SELECT %s AS name, count(*) || ' rows, ' ||
			       coalesce(md5(string_agg(row::text, E'\n' ORDER BY row::text)), '') AS digest
			  FROM %s AS row`, pq.QuoteLiteral(table), pq.QuoteIdentifier(table)))
	}
	var found []struct{ Name, Digest string }
	if err := db.SelectContext(t.Context(), &found, strings.Join(each, " UNION ALL ")); err != nil {
		t.Fatalf("digesting the tables: %v", err)
	}
	content := Content{}
	for _, table := range found {
		content[table.Name] = table.Digest
	}
	return content
}

// Differs names the tables whose content differs, in order.
func (c Content) Differs(other Content) []string {
	var tables []string
	for table, digest := range c {
		if other[table] != digest {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}
