package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/postgres"
)

// TestEmailCommands lists, shows and re-sends by the flags and by name.
func TestEmailCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	d.document(t, "demo")
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(t.Context(), `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params, state, reason,
		                    subject, text_body, html_body, created_at, finished_at)
		SELECT gen_random_uuid(), CASE WHEN n < 3 THEN application_uid END, 'task', 'Ana',
		       'ana' || n || '@example.com', '{}', CASE WHEN n < 4 THEN 'failed' ELSE 'sent' END,
		       CASE WHEN n < 4 THEN '550 no' ELSE '' END, 'A task', 'Look!', '<p>Look!</p>', at, at
		  FROM generate_series(0, 5) AS n,
		       LATERAL (SELECT timestamptz '2026-01-01T00:00:00Z' + n * interval '1 day' AS at) AS day,
		       (SELECT application_uid FROM applications ORDER BY created_at LIMIT 1) AS application`)
	if err != nil {
		t.Fatal(err)
	}
	listed := func(flags ...string) []map[string]any {
		t.Helper()
		document := d.document(t, append([]string{"email", "list"}, flags...)...)
		wantKeys(t, document, "emails", "next_cursor")
		return list(t, document, "emails")
	}
	before := []string{"--until", "2026-01-31"}
	all := listed(before...)
	if len(all) != 6 || all[0]["to"] != "ana5@example.com" || all[0]["application_uid"] != nil {
		t.Fatalf("listed %v", all)
	}
	wantKeys(t, all[0], "email_uid", "application_uid", "to", "kind", "state", "attempt_count",
		"created_at", "reason", "waits_for")
	if all[2]["reason"] != "550 no" || all[0]["reason"] != nil {
		t.Errorf("of what the text shows it says %v and %v", all[2], all[0])
	}
	application := fmt.Sprint(all[5]["application_uid"])
	for want, flags := range map[int][]string{
		4: append(before, "--state", "failed"),
		2: append(before, "--state", "failed", "--since", "2026-01-03"),
		3: append(before, "--application", application, "--kind", "task"),
		1: append(before, "--limit", "1"),
		0: append(before, "--kind", "welcome"),
	} {
		if got := listed(flags...); len(got) != want {
			t.Errorf("email list %v printed %d", flags, len(got))
		}
	}
	page := d.document(t, append([]string{"email", "list", "--limit", "4"}, before...)...)
	rest := listed(append(before, "--cursor", fmt.Sprint(page["next_cursor"]))...)
	if len(rest) != 2 || rest[0]["email_uid"] != all[4]["email_uid"] {
		t.Errorf("the second page is %v", rest)
	}
	uid := fmt.Sprint(all[5]["email_uid"])
	shown := d.document(t, "email", "show", uid)
	if shown["reason"] != "550 no" || shown["text"] != "Look!" || shown["waits_for"] != nil {
		t.Errorf("shown %v", shown)
	}
	if text := d.text(t, "email", "show", uid); !strings.Contains(text, "550 no") {
		t.Errorf("shown %s", text)
	}

	resent := func(want int, args ...string) []any {
		t.Helper()
		document := d.document(t, append([]string{"email", "resend"}, args...)...)
		wantKeys(t, document, "resent")
		made, _ := document["resent"].([]any)
		if len(made) != want {
			t.Errorf("email resend %v made %v, want %d", args, made, want)
		}
		return made
	}
	chosen := slices.Concat(before,
		[]string{"--state", "failed", "--since", "2026-01-02", "--reason", "it is back"})
	made := resent(3, chosen...)
	resent(0, chosen...)
	resent(2, uid, fmt.Sprint(all[0]["email_uid"]), uid)
	again := d.document(t, "email", "show", fmt.Sprint(made[0]))
	if again["state"] != "queued" || again["resend_of"] != all[4]["email_uid"] {
		t.Errorf("the new e-mail is %v", again)
	}
	var audited int
	err = db.GetContext(t.Context(), &audited,
		`SELECT count(*) FROM audit_log WHERE action = 'email.resend' AND subject_kind = 'email'`)
	if err != nil || audited != 5 {
		t.Errorf("%d entries in the audit log, %v", audited, err)
	}
	for _, test := range []struct {
		args   []string
		status int
		names  string
	}{
		{[]string{"email", "list", "--state", "lost"}, 2, "--state"},
		{[]string{"email", "list", "--kind", "birthday"}, 2, "--kind"},
		{[]string{"email", "list", "--limit", "501"}, 2, "--limit"},
		{[]string{"email", "resend"}, 2, "--state"},
		{append([]string{"email", "resend"}, chosen...), 0, "the flags match nothing"},
		{[]string{"delivery", "resend", "--state", "failed"}, 0, "the flags match nothing"},
		{[]string{"email", "resend", uid, "--state", "failed"}, 2, "not both"},
		{[]string{"email", "resend", fmt.Sprint(made[0])}, 1, fmt.Sprint(made[0])},
		{[]string{"email", "show", application}, 1, application},
	} {
		if got := d.run(t, test.args...); got.status != test.status ||
			!strings.Contains(got.stderr, test.names) {
			t.Errorf("%v ended with %d: %s", test.args, got.status, got.stderr)
		}
	}
}
