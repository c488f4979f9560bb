package service

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/migrations"
)

// newDemo is a harness with production settings on a database with demo data.
func newDemo(t *testing.T) (*e2etest.Harness, e2etest.Demo) {
	t.Helper()
	w := newProduction(t)
	data := e2etest.NewOn(t, w.Env["DATABASE_URL"]).DemoData()
	return w, data
}

func disableUsers(t *testing.T, w *e2etest.Harness, data e2etest.Demo) {
	t.Helper()
	for _, user := range data.Users {
		if got := w.Run("", "user", "disable", user.Email); got.Status != 0 {
			t.Fatalf("disabling %s ended with %+v", user.Email, got)
		}
	}
}

// newProduction is a harness with settings that production accepts.
func newProduction(t *testing.T) *e2etest.Harness {
	t.Helper()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_ENV"] = "production"
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
	w.Env["DRAWBRIDGE_DRAIN"] = "0s"
	return w
}

// TestAShellWithoutSettingsLeavesProductionAlone: with nothing but the database's URL a command
// runs in development mode, which creates keys, published passwords and a newer schema. The record
// in the database prevents that, but not the commands that migrate or move the database.
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
	rows := pgtest.Count(t, db, `
		SELECT (SELECT count(*) FROM users) + (SELECT count(*) FROM clients) +
		       (SELECT count(*) FROM audit_log)`)
	if rows != 0 {
		t.Errorf("%d rows were made", rows)
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

// TestPublishedClientsKeepProductionFromStarting: like published passwords, until their secrets
// cannot be used any more.
func TestPublishedClientsKeepProductionFromStarting(t *testing.T) {
	t.Parallel()
	w, data := newDemo(t)
	disableUsers(t, w, data)
	plain, group := data.Partners[0].Clients[0].ID, data.Partners[1].Clients[0].ID
	refused := func(when string, ids ...string) {
		t.Helper()
		got := w.Run("", "serve")
		if got.Status != e2etest.ExitUsage || strings.Contains(got.Stdout, "ready") {
			t.Errorf("%s it ended with %+v", when, got)
		}
		check := e2etest.Doctor(t, w, e2etest.ExitFailed)["demo"]
		if check.Finding != "failed" {
			t.Errorf("%s the doctor finds %+v", when, check)
		}
		for _, id := range []string{plain, group} {
			command := "drawbridge client revoke " + id
			if named := slices.Contains(ids, id); strings.Contains(got.Stderr, command) != named ||
				strings.Contains(check.Remedy, id) != named {
				t.Errorf("%s it says %s and the doctor %s", when, got.Stderr, check.Remedy)
			}
		}
	}
	act := func(line string) {
		t.Helper()
		if got := w.Run("", strings.Fields(line)...); got.Status != 0 {
			t.Fatalf("%s ended with %+v", line, got)
		}
	}
	refused("with both clients", plain, group)
	act("client revoke " + group)
	refused("with one", plain)
	act("client rotate " + plain)
	refused("in the overlap", plain)
	act("client rotate --overlap 0s " + plain)
	w.Serve().Stop()
	// The doctor fails because no worker runs.
	if check := e2etest.Doctor(t, w, e2etest.ExitFailed)["demo"]; check.Finding != "ok" {
		t.Errorf("the doctor finds %+v", check)
	}
}

// TestPublishedPasswordsAreLookedForBehindALateMigration: a process that starts before the schema
// exists looks for them once it does.
func TestPublishedPasswordsAreLookedForBehindALateMigration(t *testing.T) {
	t.Parallel()
	w, data := newDemo(t)
	for _, partner := range data.Partners {
		for _, client := range partner.Clients {
			if got := w.Run("", "client", "revoke", client.ID); got.Status != 0 {
				t.Fatalf("revoking ended with %+v", got)
			}
		}
	}
	if _, err := migrations.Down(t.Context(), w.Open(t).DB.DB); err != nil {
		t.Fatal(err)
	}
	server := w.Serve("--roles", "api")
	worker := w.Command("serve", "--roles", "worker")
	var logged strings.Builder
	worker.Stderr = &logged
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Process.Kill() }) // it has already ended unless the test failed
	readiness := func() (int, string) {
		t.Helper()
		response, err := http.Get(server.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := readiness(); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "migrat") {
		t.Errorf("before the migration it is %d %s", status, body)
	}
	if got := w.Run("", "migrate", "up"); got.Status != 0 {
		t.Fatalf("migrating ended with %+v", got)
	}
	for range 2 {
		if status, body := readiness(); status != http.StatusServiceUnavailable ||
			!strings.Contains(body, "published passwords") {
			t.Fatalf("after the migration it is %d %s", status, body)
		}
	}
	if err := worker.Wait(); worker.ProcessState.ExitCode() != e2etest.ExitUsage ||
		!strings.Contains(logged.String(), "published passwords") {
		t.Errorf("the worker ended with %v: %s", err, logged.String())
	}
	disableUsers(t, w, data)
	if status, body := readiness(); status != http.StatusOK {
		t.Errorf("without them it is %d %s", status, body)
	}
}

// TestAnotherEnvironmentIsNotRecordedUnderAService: the record cannot be changed while processes
// serve the database; if it was changed nevertheless, their workers rest until it is theirs again.
func TestAnotherEnvironmentIsNotRecordedUnderAService(t *testing.T) {
	t.Parallel()
	w := newProduction(t)
	server := w.Serve()
	got := w.Run("", "environment", "set", "sandbox")
	named := fmt.Sprintf("process %d on ", server.Command.Process.Pid)
	if got.Status != e2etest.ExitFailed || !strings.Contains(got.Stderr, named) {
		t.Errorf("beside a service it ended with %+v", got)
	}
	db := w.Open(t)
	w.Execute(db, `UPDATE installation SET environment = 'sandbox'`)
	server.WaitForLog("the queues rest")
	server.WaitForLog("nothing is sent: the database is not this process's")
	response, err := http.Get(server.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("on a sandbox's database production is ready: %d", response.StatusCode)
	}
	w.Execute(db, `UPDATE installation SET environment = 'production';
		INSERT INTO river_job (state, queue, kind, args, max_attempts)
		VALUES ('available', 'default', 'housekeep', '{"again": true}', 25)`)
	e2etest.WaitForCount(t, db, 1, `SELECT count(*) FROM river_job
		WHERE args = '{"again": true}' AND state = 'completed'`)
}

// TestAProcessStartsOnAServerThatCanOnlyBeRead: it serves once it can write. Commands that write
// say what to do.
func TestAProcessStartsOnAServerThatCanOnlyBeRead(t *testing.T) {
	t.Parallel()
	w := newProduction(t)
	w.Serve().Stop()
	db := w.Open(t)
	setReadOnly := func(value string) {
		t.Helper()
		w.Execute(db, `DO $$ BEGIN EXECUTE format(
			'ALTER DATABASE %I SET default_transaction_read_only = `+value+`', current_database()); END $$`)
	}
	setReadOnly("on")
	for _, line := range []string{
		"restore hold --reason test", "user disable ana@example.com", "backup record",
		"environment set sandbox", "partner create --name Sunfield",
	} {
		got := w.Run("", strings.Fields(line)...)
		if got.Status != e2etest.ExitFailed || strings.Contains(got.Stderr, "pq:") ||
			!strings.Contains(got.Stderr, "name the primary in DATABASE_URL") {
			t.Errorf("%s ended with %+v", line, got)
		}
	}
	w.Execute(db, `UPDATE installation SET identity = 'another'`) // over a connection opened before
	server := w.Serve()
	readiness := func() (status int) {
		t.Helper()
		response, err := http.Get(server.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := readiness(); got != http.StatusServiceUnavailable {
		t.Errorf("while it can only be read it is %d", got)
	}
	setReadOnly("off")
	waittest.Within(t, time.Minute, "it is ready", func() bool { return readiness() == http.StatusOK })
	e2etest.WaitForCount(t, db, 1, `SELECT count(*) FROM installation WHERE held_at IS NOT NULL`)
}
