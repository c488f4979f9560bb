package main

import (
	"fmt"
	"strings"
	"testing"
)

// Secret header values are never printed, whichever flag made them secret.
func TestSecretHeaderValuesAreNotPrinted(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	made := d.document(t, "subscription", "create", "--partner", partner,
		"--url", "https://hooks.example/", "--event", "all", "--header", "x-api-key: hidden-one",
		"--header", "x-tenant: north", "--secret-header", "x-region: hidden-two",
		"--plain-header", "x-token-kind: seen")
	uid, _ := made["subscription_uid"].(string)
	want := "[map[name:x-api-key secret:true value:<nil>] " +
		"map[name:x-tenant secret:false value:north] map[name:x-region secret:true value:<nil>] " +
		"map[name:x-token-kind secret:false value:seen]]"
	shown := d.document(t, "subscription", "show", uid)
	listed := list(t, d.document(t, "subscription", "list"), "subscriptions")[0]
	version := list(t, d.document(t, "subscription", "versions", uid), "versions")[0]
	for _, document := range []map[string]any{made, shown, listed, version} {
		if got := fmt.Sprint(document["headers"]); got != want {
			t.Errorf("headers %s, want %s", got, want)
		}
	}
	text := d.text(t, "subscription", "show", uid)
	if strings.Contains(text, "hidden-") || !strings.Contains(text, "x-tenant: north") {
		t.Errorf("printed %s", text)
	}
	kept := d.document(t, "subscription", "update", uid, "--keep-header", "X-Api-Key",
		"--plain-header", "x-tenant: south")
	want = "[map[name:x-tenant secret:false value:south] map[name:x-api-key secret:true value:<nil>]]"
	if got := fmt.Sprint(kept["headers"]); got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
	for _, args := range [][]string{
		{"update", uid, "--keep-header", "x-region"},
		{"update", uid, "--header", "webhook-id: x"},
		{"update", uid, "--no-headers", "--keep-header", "x-tenant"},
		{"restore", uid, "--version", "1", "--no-headers", "--secret-header", "x-region: x"},
	} {
		if got := d.run(t, append([]string{"subscription"}, args...)...); got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
}

// An update or a restore does not move a token or secret headers to another host.
func TestCredentialsAreGivenAnewForAnotherHost(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	made := d.document(t, "subscription", "create", "--partner", partner, "--auth", "bearer",
		"--url", "https://old.example/", "--event", "all", "--header", "x-api-key: hidden-one")
	uid, _ := made["subscription_uid"].(string)
	refused := func(stdin string, args ...string) {
		t.Helper()
		got := d.runWith(t, stdin, append([]string{"subscription"}, args...)...)
		if got.status != exitFailed || !strings.Contains(got.stderr, "given again") {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
	refused("", "update", uid, "--url", "https://new.example/")
	refused("", "update", uid, "--url", "https://new.example/", "--no-headers")
	refused("token-of-the-new-one\n", "update", uid, "--url", "https://new.example/", "--secret", "-",
		"--keep-header", "x-api-key")
	same := d.document(t, "subscription", "update", uid, "--url", "https://OLD.example:443/path")
	if same["url"] == "https://old.example/" {
		t.Errorf("on the same host it stays at %v", same["url"])
	}
	moved := d.runWith(t, "token-of-the-new-one\r\n", "subscription", "update", uid, "--url",
		"https://new.example/", "--secret", "-", "--header", "x-api-key: hidden-two", "--json")
	if moved.status != exitOK || !strings.Contains(moved.stdout, `"secret": "token-of-the-new-one"`) {
		t.Errorf("moving ended with %d: %s%s", moved.status, moved.stdout, moved.stderr)
	}
	refused("", "restore", uid, "--version", "1")
	refused("", "restore", uid, "--version", "1", "--secret", "token-of-the-old-one")
	back := d.document(t, "subscription", "restore", uid, "--version", "1", "--secret",
		"token-of-the-old-one", "--secret-header", "x-api-key: hidden-three")
	if back["url"] != "https://old.example/" || back["secret"] != "token-of-the-old-one" {
		t.Errorf("restored %v", back)
	}
	for stdin, status := range map[string]int{
		"": exitUsage, "\n": exitUsage, strings.Repeat("x", 257): exitUsage, "fifteen-letters": exitUsage,
		strings.Repeat("x", 256) + "\n": exitOK, "sixteen-letters!": exitOK,
	} {
		got := d.runWith(t, stdin, "subscription", "update", uid, "--secret", "-")
		if got.status != status {
			t.Errorf("%d bytes ended with %d: %s", len(stdin), got.status, got.stderr)
		}
	}
}
