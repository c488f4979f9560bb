package main

import (
	"slices"
	"strings"
	"testing"
)

// Products and users are listed newest first, in pages like other lists.
func TestProductsAndUsersNewestFirst(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	for _, name := range []string{"B", "C", "A"} {
		d.document(t, productArgs("--code", name)...)
		got := d.runWith(t, "a long enough phrase 7\n", "user", "create",
			"--email", name+"@lender.example", "--name", name, "--role", "support")
		if got.status != exitOK {
			t.Fatalf("creating the user %s: %s", name, got.stderr)
		}
	}
	for _, test := range []struct{ command, plural, field string }{
		{"product", "products", "code"}, {"user", "users", "name"},
	} {
		var seen []string
		args := []string{test.command, "list", "--limit", "2"}
		for {
			page := d.document(t, args...)
			for _, row := range list(t, page, test.plural) {
				seen = append(seen, row[test.field].(string))
			}
			next, more := page["next_cursor"].(string)
			if !more {
				break
			}
			args = []string{test.command, "list", "--limit", "2", "--cursor", next}
		}
		if !slices.Equal(seen, []string{"A", "C", "B"}) {
			t.Errorf("%s list: %v, want the newest first", test.command, seen)
		}
		whole := list(t, d.document(t, test.command, "list"), test.plural)
		if len(whole) != 3 || whole[0][test.field] != "A" {
			t.Errorf("%s list without flags: %v", test.command, whole)
		}
		if got := d.run(t, test.command, "list", "--limit", "501"); got.status != exitUsage ||
			!strings.Contains(got.stderr, "--limit must be from 1 to 500") {
			t.Errorf("%s list of 501: %d, %q", test.command, got.status, got.stderr)
		}
	}
}
