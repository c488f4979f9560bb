package main

import (
	"strings"
	"testing"
	"time"

	"drawbridge/internal/config"
)

func TestStatementCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	made := d.document(t, "merchant", "create", "--partner", partner, "--name", "M")
	merchant, _ := made["merchant_uid"].(string)
	settings, err := config.Load(func(name string) string { return d.variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	today := settings.Calendar().DayOf(time.Now()).String()

	shown := d.document(t, "statement", "show", merchant, today)
	wantKeys(t, shown, "timestamp", "statusCode", "result")
	if text := d.text(t, "statement", "show", merchant, today, "--csv"); !strings.Contains(text,
		"\nstatement,"+today+",,"+merchant) {
		t.Errorf("as CSV it is %q", text)
	}
	wantKeys(t, d.document(t, "statement", "list", "--merchant", merchant),
		"statements", "next_cursor")

	before, _ := d.document(t, "statement", "keys")["keys"].([]any)
	rotated := d.document(t, "statement", "rotate-key")
	wantKeys(t, rotated, "kid", "algorithm", "public_key", "from", "until")
	after, _ := d.document(t, "statement", "keys")["keys"].([]any)
	if len(before) != 1 || len(after) != 2 {
		t.Errorf("keys %v, then %v", before, after)
	}
	if id, _ := rotated["kid"].(string); !strings.Contains(
		d.text(t, "statement", "keys"), id+"  Ed25519") {
		t.Errorf("the new key %q is not listed", id)
	}
	if audit := d.text(t, "audit", "list", "--action", "statement.rotate_key"); !strings.Contains(
		audit, "command line") {
		t.Errorf("the audit log says %q", audit)
	}
	for _, test := range []struct {
		args   []string
		status int
		names  string
	}{
		{[]string{"show", merchant, "2001-01-01"}, 1, "2001-01-01"},
		{[]string{"show", merchant, "today"}, 2, "2026-11-20"},
		{[]string{"show", "x", today}, 2, "UUID"},
		{[]string{"show", merchant, today, "--version", "1"}, 1, "version 1"},
		{[]string{"list", "--date", "x"}, 2, "--date"},
		{[]string{"list", "--limit", "501"}, 2, "--limit"},
		{[]string{"list", "--cursor", "x"}, 2, "--cursor"},
	} {
		got := d.run(t, append([]string{"statement"}, test.args...)...)
		if got.status != test.status || !strings.Contains(got.stderr, test.names) {
			t.Errorf("%q ended with %d: %s", test.args, got.status, got.stderr)
		}
	}
}
