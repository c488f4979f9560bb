package main

import (
	"fmt"
	"testing"
)

// TestSubscriptionOptions sets, shows, changes and removes a subscription's optional settings.
func TestSubscriptionOptions(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	made := d.document(t, "subscription", "create", "--partner", partner,
		"--url", "https://hooks.example/", "--event", "all")
	uid, _ := made["subscription_uid"].(string)
	want := func(document map[string]any, name, retry, standard any) {
		t.Helper()
		got := fmt.Sprintf("%v, %v, %v", document["name"], document["retry"], document["standard"])
		if got != fmt.Sprintf("%v, %v, %v", name, retry, standard) {
			t.Errorf("%s, want %v, %v, %v", got, name, retry, standard)
		}
	}
	update := func(args ...string) map[string]any {
		return d.document(t, append([]string{"subscription", "update", uid}, args...)...)
	}
	want(made, nil, nil, false)
	want(update("--name", "CRM", "--retry", "5m,2h", "--standard"), "CRM", "[5m 2h]", true)
	want(d.document(t, "subscription", "show", uid), "CRM", "[5m 2h]", true)
	want(update("--rate", "5"), "CRM", "[5m 2h]", true)
	want(update("--name", "", "--retry", "default", "--standard=false"), nil, nil, false)
	for _, args := range [][]string{
		{"--retry", "5m"},
		{"--retry", "1ms,2h"},
		{"--retry", "5m,73h"},
		{"--auth", "none", "--standard"},
		{"--secret", "a secret of the desk", "--overlap", "721h"},
	} {
		got := d.run(t, append([]string{"subscription", "update", uid}, args...)...)
		if got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
}
