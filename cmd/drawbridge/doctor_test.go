package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/email/emailtest"
)

// examined runs the doctor and returns its findings by name.
func examined(t *testing.T, w *world, status int, args ...string) map[string]checkup {
	t.Helper()
	got := w.run("", append([]string{"doctor", "--json"}, args...)...)
	if got.status != status {
		t.Fatalf("doctor ended with %d, want %d: %s%s", got.status, status, got.stdout, got.stderr)
	}
	var document struct {
		Checks []checkup `json:"checks"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil {
		t.Fatalf("doctor printed %q: %v", got.stdout, err)
	}
	found := map[string]checkup{}
	for _, checkup := range document.Checks {
		found[checkup.Name] = checkup
	}
	return found
}

func TestDoctorFindsAHealthyInstallation(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "204 No Content")
	mail := emailtest.NewServer(t, emailtest.Options{})
	w.vars["SSL_CERT_FILE"] = e.caFile
	w.vars["DRAWBRIDGE_SMTP_URL"] = mail.URL()
	w.demoData()
	found := examined(t, w, 0, "--https", e.url)
	way := found["https"]
	if way.Finding != findingWarning || !strings.Contains(way.Detail, "valid until") {
		t.Errorf("an endpoint whose certificate ends within the hour: %+v", way)
	}
	for _, name := range []string{
		"settings", "database", "migrations", "clock", "bucket", "mail",
	} {
		if found[name].Finding != findingOK || found[name].Remedy != "" {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	if mails := mail.Messages(); len(mails) > 0 {
		t.Errorf("the doctor sent %d mails", len(mails))
	}
}

// TestDoctorSaysWhatToDo breaks each thing that the service depends on.
func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	blocked := filepath.Join(w.folder, "blobs")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	w.vars["DRAWBRIDGE_SMTP_URL"] = "smtp://sam:hunter2@" + nobody
	found := examined(t, w, 1, "--https", "https://"+nobody)
	for name, remedy := range map[string]string{
		"mail": "DRAWBRIDGE_SMTP_URL", "https": "firewall",
	} {
		if found[name].Finding != findingFailed || !strings.Contains(found[name].Remedy, remedy) ||
			strings.Contains(found[name].Detail, "hunter2") {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	w.vars["DRAWBRIDGE_BLOB_URL"] = "file://" + blocked
	if found := examined(t, w, 1); found["settings"].Finding != findingFailed {
		t.Errorf("a bucket that is a file: %+v", found)
	}
	w.vars["DATABASE_URL"] = "postgres://sam:hunter2@" + nobody + "/x"
	found = examined(t, w, 1)
	if database := found["database"]; database.Finding != findingFailed ||
		!strings.Contains(database.Remedy, "DATABASE_URL") ||
		strings.Contains(database.Detail, "hunter2") {
		t.Errorf("no database: %+v", found)
	}
	w.vars["DRAWBRIDGE_LISTEN"] = "nowhere"
	if found := examined(t, w, 1); !strings.Contains(found["settings"].Detail, "DRAWBRIDGE_LISTEN") {
		t.Errorf("wrong settings: %+v", found)
	}
}

func TestDoctorMissesMigrations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.run("", "migrate", "down"); got.status != 0 {
		t.Fatalf("migrate down ended with %d: %s", got.status, got.stderr)
	}
	found := examined(t, w, 1)
	if schema := found["migrations"]; schema.Finding != findingFailed ||
		schema.Remedy != "Run drawbridge migrate up." {
		t.Errorf("%+v", schema)
	}
}

func TestClockIsJudged(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]finding{
		0: findingOK, -time.Second: findingOK, 3 * time.Second: findingWarning,
		-time.Minute: findingFailed,
	} {
		if got := examineClock(ahead); got.Finding != want || (want != findingOK) != (got.Remedy != "") {
			t.Errorf("%s ahead: %+v, want %s", ahead, got, want)
		}
	}
}
