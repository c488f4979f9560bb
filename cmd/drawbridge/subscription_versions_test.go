package main

import (
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/postgres"
)

// A process with other keys has stopped a subscription whose secret the command can decrypt.
func TestStoppedSubscriptionsAreShown(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	uid, _ := d.document(t, "subscription", "create", "--partner", partner, "--url",
		"https://hooks.example/", "--event", "all")["subscription_uid"].(string)
	if before := d.text(t, "subscription", "show", uid); strings.Contains(before, "stopped") {
		t.Errorf("before it says %s", before)
	}
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), `
		UPDATE subscriptions SET stopped_at = '2026-11-28 10:00:00Z'`)
	if err != nil {
		t.Fatal(err)
	}
	shown := d.text(t, "subscription", "show", uid)
	for _, want := range []string{
		"(active, stopped)",
		"Stopped since 2026-11-28T10:00:00Z: a process has another DRAWBRIDGE_SECRETS_KEY",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s does not say %q", shown, want)
		}
	}
	if listed := d.text(t, "subscription", "list"); !strings.Contains(listed, "active, stopped") {
		t.Errorf("listed as %s", listed)
	}
	document := d.document(t, "subscription", "show", uid)
	if document["stopped_at"] != "2026-11-28T10:00:00Z" || document["state"] != "active" {
		t.Errorf("as JSON it is %v", document)
	}
	// A change for which everything can be decrypted starts it again.
	changed := d.document(t, "subscription", "update", uid, "--rate", "5")
	if changed["stopped_at"] != nil {
		t.Errorf("after a change it is %v", changed)
	}
}

func TestVersionCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	created := d.document(t, "subscription", "create", "--partner", partner, "--auth", "hmac",
		"--url", "https://hooks.example/one", "--event", "all", "--header", "x-api-key: first one")
	uid, _ := created["subscription_uid"].(string)
	value, _ := created["secret"].(string)
	d.document(t, "subscription", "update", uid, "--url", "https://hooks.example/two",
		"--header", "x-api-key: second one", "--reason", "they moved", "--base", "1")
	got := d.run(t, "subscription", "update", uid, "--event", "task.created", "--base", "1")
	if got.status != exitFailed || !strings.Contains(got.stderr, "url, headers") {
		t.Errorf("a stale change ended with %d: %s", got.status, got.stderr)
	}

	versions := list(t, d.document(t, "subscription", "versions", uid), "versions")
	if len(versions) != 2 || versions[0]["reason"] != "they moved" {
		t.Fatalf("versions %v", versions)
	}
	wantKeys(t, versions[0], "version", "change", "changed_by", "changed_at", "reason", "url",
		"auth", "events", "merchants", "headers", "state")
	compared := d.document(t, "subscription", "versions", uid, "--from", "1", "--to", "2")
	if changes := list(t, compared, "changes"); len(changes) != 2 ||
		changes[0]["after"] != "https://hooks.example/two" || changes[1]["masked"] != true {
		t.Errorf("changes %v", changes)
	}
	text := d.text(t, "subscription", "versions", uid) +
		d.text(t, "subscription", "versions", uid, "--from", "2", "--to", "1") + fmt.Sprint(versions)
	if strings.Contains(text, "first one") || strings.Contains(text, value) ||
		!strings.Contains(text, "headers x-api-key: [hidden] -> [hidden]") {
		t.Errorf("printed %s", text)
	}

	restored := d.document(t, "subscription", "restore", uid, "--version", "1", "--reason", "back")
	if restored["url"] != "https://hooks.example/one" || restored["secret"] != nil {
		t.Errorf("restored %v", restored)
	}
	again := d.run(t, "subscription", "restore", uid, "--version", "2")
	if again.status != exitOK || !strings.Contains(again.stderr, "warning: ") {
		t.Errorf("a name that does not resolve: %d, %s", again.status, again.stderr)
	}
	for _, args := range [][]string{
		{"subscription", "versions", uid, "--from", "1"},
		{"subscription", "versions", "x"},
		{"subscription", "restore", uid},
		{"subscription", "compare-secret", uid},
	} {
		if got := d.run(t, args...); got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
	for pasted, match := range map[string]string{value + "\n": "current", "other": "none"} {
		got := d.runWith(t, pasted, "subscription", "compare-secret", uid, "--json")
		if got.status != exitOK || !strings.Contains(got.stdout, `"match": "`+match+`"`) ||
			strings.Contains(got.stdout+got.stderr, value) {
			t.Errorf("comparing ended with %d: %s%s", got.status, got.stdout, got.stderr)
		}
	}
	for range maxComparisons {
		got = d.runWith(t, "guess", "subscription", "compare-secret", uid)
	}
	if got.status != exitFailed || !strings.Contains(got.stderr, "20 times in 1 h; try again in ") {
		t.Errorf("guessing went on: %d %s", got.status, got.stderr)
	}
}
