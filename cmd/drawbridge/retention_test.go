package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

func TestRetentionCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	shown := d.document(t, "retention", "show")
	if shown["metadata_months"] != 13.0 || shown["body_days"] != 90.0 {
		t.Errorf("defaults %v", shown)
	}
	changed := d.document(t, "retention", "set", "--body-days", "60")
	if changed["body_days"] != 60.0 || changed["updated_by"] != cliActor {
		t.Errorf("changed %v", changed)
	}
	if text := d.text(t, "retention", "show"); !strings.Contains(text, "60 days") {
		t.Errorf("printed %s", text)
	}
	got := d.run(t, "retention", "set", "--metadata-months", "2", "--body-days", "90")
	if got.status != exitUsage || !strings.Contains(got.stderr, "body_days") {
		t.Errorf("bodies beyond their rows: %d %s", got.status, got.stderr)
	}
	wantKeys(t, d.document(t, "retention", "run", "--dry-run"),
		"event_bodies", "delivery_bodies", "email_bodies", "months", "bulk_resends",
		"api_request_days", "api_requests", "holds_in_force")
	wantKeys(t, d.document(t, "retention", "run"), "event_bodies", "attempt_bodies",
		"email_bodies", "months", "bulk_resends", "months_left_to_owner", "released_holds_swept",
		"busy", "api_request_days")
	if text := d.text(t, "retention", "run"); !strings.Contains(text, "months removed: none") {
		t.Errorf("printed %s", text)
	}
	if text := d.text(t, "retention", "run", "--dry-run"); !strings.Contains(text, "bodies due: 0") {
		t.Errorf("printed %s", text)
	}
}

// The next run removes exactly what a dry run says about the log of API requests.
func TestRetentionDryRunOfTheRequestLog(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	log, at := apilog.NewWriter(db), time.Now().UTC().AddDate(0, 0, -40)
	for range 3 {
		log.Record(apilog.Entry{
			UID: postgres.NewUID(at), At: at, Method: "GET", Authenticated: true, Status: 200,
			ClientID: "dbc_1", MerchantUID: uuid.New(),
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	log.Run(ended)
	planned := d.document(t, "retention", "run", "--dry-run")
	text := d.text(t, "retention", "run", "--dry-run")
	removed := d.document(t, "retention", "run")
	if planned["api_requests"] != 3.0 || planned["api_request_days"] == 0.0 ||
		planned["api_request_days"] != removed["api_request_days"] {
		t.Errorf("planned %v, removed %v", planned, removed)
	}
	want := fmt.Sprintf("days of the request log due: %v, with 3 requests",
		planned["api_request_days"])
	if !strings.Contains(text, want) {
		t.Errorf("printed %s, want %q", text, want)
	}
	again := d.document(t, "retention", "run", "--dry-run")
	if again["api_request_days"] != 0.0 || again["api_requests"] != 0.0 {
		t.Errorf("planned after the run: %v", again)
	}
}

func TestLegalHoldCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	d.document(t, "demo")
	demo := list(t, d.document(t, "demo"), "loans")
	uid, _ := demo[0]["loan_application_uid"].(string)
	held := d.document(t, "application", "hold", uid, "--reason", "case 7")
	if held["reason"] != "case 7" || held["released_at"] != nil {
		t.Errorf("held %v", held)
	}
	if got := d.run(t, "application", "hold", uid, "--reason", "again"); got.status != exitFailed {
		t.Errorf("a second hold ended with %d", got.status)
	}
	if holds := list(t, d.document(t, "application", "holds"), "holds"); len(holds) != 1 {
		t.Errorf("holds %v", holds)
	}
	if text := d.text(t, "application", "release", uid, "--reason", "closed"); !strings.Contains(
		text, "released") {
		t.Errorf("printed %s", text)
	}
	if holds := list(t, d.document(t, "application", "holds", uid), "holds"); len(holds) != 1 ||
		holds[0]["release_reason"] != "closed" {
		t.Errorf("holds %v", holds)
	}
	// The person responsible for legal holds needs all of them. Their applications do not matter here.
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), `
		SET session_replication_role = replica;
		INSERT INTO application_holds (application_uid, reason, placed_by, placed_at)
		SELECT gen_random_uuid(), 'case 8', 'legal', now() FROM generate_series(1, 501)`)
	if err != nil {
		t.Fatal(err)
	}
	if holds := list(t, d.document(t, "application", "holds"), "holds"); len(holds) != 501 {
		t.Errorf("%d of 501 holds are listed", len(holds))
	}
	for _, args := range [][]string{
		{"application", "hold", uid},
		{"application", "hold", "x", "--reason", "y"},
		{"application", "release", uid},
	} {
		if got := d.run(t, args...); got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
	got := d.run(t, "application", "hold", uuid.NewString(), "--reason", "y")
	if got.status != exitFailed || !strings.Contains(got.stderr, "no application") {
		t.Errorf("an unknown application ended with %d: %s", got.status, got.stderr)
	}
}

// A key is replaced step by step, and no output or log line of a command meanwhile contains a
// secret or a key.
func TestRotateKeyCommand(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.document(t, "partner", "create", "--name", "P")["partner_uid"].(string)
	const signing, header = "whsec_of_the_partners_own_making", "header-credential-value"
	created := d.document(t, "subscription", "create", "--partner", partner, "--auth", "hmac",
		"--secret", signing, "--url", "https://hooks.example/in", "--event", "all",
		"--header", "x-api-key: "+header)
	uid, _ := created["subscription_uid"].(string)
	old, fresh := d.variables["DRAWBRIDGE_SECRETS_KEY"], secret.GenerateKey()
	var said strings.Builder
	step := func(keys string, status int, args ...string) string {
		t.Helper()
		d.variables["DRAWBRIDGE_SECRETS_KEY"] = keys
		got := d.run(t, append([]string{"secrets", "rotate-key"}, args...)...)
		if got.status != status {
			t.Errorf("%v ended with %d: %s%s", args, got.status, got.stdout, got.stderr)
		}
		said.WriteString(got.stdout + got.stderr)
		return got.stdout
	}
	step(old+","+fresh, exitOK, "--check")
	step(fresh+","+old, exitOK, "--check", "--json")
	if text := step(fresh, exitFailed); !strings.Contains(text, "its key is not in") {
		t.Errorf("without the old key: %s", text)
	}
	if text := step(fresh+","+old, exitOK); !strings.Contains(text, "re-encrypted: 3") {
		t.Errorf("rotating printed %s", text)
	}
	step(fresh, exitOK, "--check")
	var actions []string // newest first
	for _, record := range list(t, d.document(t, "audit", "list", "--action", "secrets."), "entries") {
		actions = append(actions, fmt.Sprint(record["action"]))
	}
	const began, ended = "secrets.rotate_begin", "secrets.rotate_key"
	if !slices.Equal(actions, []string{ended, began, ended, began}) {
		t.Errorf("the audit log has %v of two runs", actions)
	}
	for pasted, match := range map[string]string{signing: "current", "other": "none"} {
		got := d.runWith(t, pasted, "subscription", "compare-secret", uid, "--json")
		if !strings.Contains(got.stdout, `"match": "`+match+`"`) {
			t.Errorf("with the new key alone: %s%s", got.stdout, got.stderr)
		}
	}
	for _, hidden := range []string{signing, header, old, fresh} {
		if strings.Contains(said.String(), hidden) {
			t.Errorf("the output shows %q", hidden)
		}
	}
}
