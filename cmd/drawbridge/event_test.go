package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestEventCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	subscription, _ := d.document(t, "subscription", "create", "--partner", partner,
		"--url", "https://hooks.example/in", "--name", "CRM",
		"--event", "all")["subscription_uid"].(string)
	d.document(t, "subscription", "test", subscription, "--event", "document.sent")

	events := list(t, d.document(t, "event", "list", "--partner", partner), "events")
	if len(events) != 1 || events[0]["event"] != "document.sent" || events[0]["test"] != true {
		t.Fatalf("events %v", events)
	}
	wantKeys(t, events[0], "event_uid", "event", "partner_uid", "merchant_uid", "application_id",
		"status", "timestamp", "test", "body_removed_at", "deliveries")
	uid, _ := events[0]["event_uid"].(string)
	shown := d.document(t, "event", "show", uid)
	ledger := list(t, shown, "ledger")
	if len(ledger) != 1 || ledger[0]["subscription_uid"] != subscription ||
		ledger[0]["verdict"] != "sent" || ledger[0]["delivery_state"] != "pending" {
		t.Errorf("ledger %v", ledger)
	}
	wantKeys(t, ledger[0], "subscription_uid", "name", "url", "verdict", "version", "delivery_uid",
		"delivery_state", "created_at", "deleted_at")
	if text := d.text(t, "event", "show", uid); !strings.Contains(text, "DOCUMENT_SENT") ||
		!strings.Contains(text, "CRM (hooks.example/in)") {
		t.Errorf("printed %s", text)
	}
	sent := list(t, d.document(t, "delivery", "list"), "deliveries")
	delivery, _ := sent[0]["delivery_uid"].(string)
	shown = d.document(t, "delivery", "show", delivery)
	for _, printed := range []map[string]any{sent[0], shown, ledger[0]} {
		if printed["name"] != "CRM" {
			t.Errorf("printed %v, want the subscription's name", printed)
		}
	}
	for _, args := range [][]string{{"delivery", "list"}, {"delivery", "show", delivery}} {
		if text := d.text(t, args...); !strings.Contains(text, "CRM (hooks.example/in)") {
			t.Errorf("%v printed %s", args, text)
		}
	}
	if text := d.text(t, "event", "list", "--kind", "document.sent"); !strings.Contains(text, uid) {
		t.Errorf("printed %s", text)
	}
	for _, args := range [][]string{
		{"event", "why", "x", "--event", "birthday"},
		{"event", "why", "x"},
		{"event", "list", "--kind", "birthday"},
		{"event", "list", "--partner", "x"},
		{"event", "list", "--since", "yesterday"},
		{"event", "list", "--limit", "0"},
	} {
		if got := d.run(t, args...); got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
	if got := d.run(t, "event", "show", uuid.NewString()); got.status != exitFailed {
		t.Errorf("an unknown event ended with %d: %s", got.status, got.stderr)
	}
}

// The answer about a missing event says what it waits for.
func TestEventWhy(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	var uid string
	for _, loan := range list(t, d.document(t, "demo"), "loans") {
		if loan["stage"] == "pending" {
			uid, _ = loan["loan_application_uid"].(string)
		}
	}
	answer := d.document(t, "event", "why", uid, "--event", "disbursement.funding.settled")
	wantKeys(t, answer, "application_id", "outcome", "sentence", "event_uid", "timestamp", "others",
		"endpoints")
	sentence, _ := answer["sentence"].(string)
	if answer["application_id"] != uid || answer["outcome"] != "not_happened" ||
		!strings.Contains(sentence, "is only requested") {
		t.Errorf("answered %v", answer)
	}
	sent := d.text(t, "event", "why", uid, "--event", "disbursement.funding.status-changed")
	if !strings.Contains(sent, "draw #") {
		t.Errorf("printed %s", sent)
	}
	got := d.run(t, "event", "why", "nobody", "--event", "document.sent")
	if got.status != exitFailed {
		t.Errorf("about nobody it ended with %d: %s", got.status, got.stderr)
	}
}
