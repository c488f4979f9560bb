package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/migrations"
)

// newProduction is a harness with settings that production takes.
func newProduction(t *testing.T) *e2etest.Harness {
	t.Helper()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_ENV"] = "production"
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
	w.Env["DRAWBRIDGE_DRAIN"] = "0s"
	return w
}

// TestAShellWithoutSettingsLeavesProductionAlone: with nothing but the URL of the database a
// command is one of development, which makes keys, published passwords and a newer schema. The
// record in the database keeps it from that, and from nothing that moves the database.
func TestAShellWithoutSettingsLeavesProductionAlone(t *testing.T) {
	t.Parallel()
	w := newProduction(t)
	w.Serve().Stop()
	db := w.Open(t)
	newest, err := migrations.Down(t.Context(), db.DB.DB)
	if err != nil {
		t.Fatal(err)
	}
	shell := e2etest.NewOn(t, w.Env["DATABASE_URL"])
	for _, line := range []string{
		"demo", "partner list", "serve", "serve --roles worker", "secrets rotate-key",
		"seed --deliveries 10 --attempts 10 --partners 1 --days 1",
		"subscription update 0190d3c2-0000-7000-8000-000000000001 --secret 0123456789abcdef",
		"retention run", "restore show",
	} {
		got := shell.Run("", strings.Fields(line)...)
		if got.Status != e2etest.ExitUsage || got.Stdout != "" ||
			!strings.Contains(got.Stderr, "the database is that of a production service") {
			t.Errorf("%s ended with %+v", line, got)
		}
	}
	check := e2etest.Doctor(t, shell, e2etest.ExitFailed)["environment"]
	if check.Finding != "failed" || !strings.Contains(check.Detail, "production") {
		t.Errorf("the doctor finds %+v", check)
	}
	var shown struct{ Environment string }
	if shell.JSON(&shown, "environment", "show"); shown.Environment != "production" {
		t.Errorf("the record is %q", shown.Environment)
	}
	missing, err := migrations.Pending(t.Context(), db.DB.DB)
	if err != nil || len(missing) != 1 || missing[0] != newest {
		t.Errorf("the schema lacks %q, want %s (%v)", missing, newest, err)
	}
	var rows int
	err = db.GetContext(t.Context(), &rows, `
		SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM clients) +
		       (SELECT count(*) FROM audit_log)`)
	if err != nil || rows != 0 {
		t.Errorf("%d rows were made (%v)", rows, err)
	}

	for _, line := range []string{"migrate up", "environment set development"} {
		if got := shell.Run("", strings.Fields(line)...); got.Status != 0 {
			t.Errorf("%s ended with %+v", line, got)
		}
	}
	if _, err := os.Stat(filepath.Join(shell.Folder, ".data", "secrets.key")); err == nil {
		t.Error("a key was made")
	}
	if got := shell.Run("", "partner", "list"); got.Status != 0 {
		t.Errorf("after the move it ended with %+v", got)
	}
}
