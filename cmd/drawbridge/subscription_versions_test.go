package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestVersionCommands(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
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
