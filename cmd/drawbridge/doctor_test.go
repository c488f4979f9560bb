package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/secret"
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
		"settings", "database", "migrations", "clock", "keys", "restore", "bucket", "mail",
	} {
		if found[name].Finding != findingOK || found[name].Remedy != "" {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	if got := found["mail"].Detail; !strings.Contains(got, "greeted us without encryption, was given "+
		"no sign-in and accepted the sender no-reply@localhost.") {
		t.Errorf("the doctor says of the mail server %q", got)
	}
	if mails := mail.Messages(); len(mails) > 0 {
		t.Errorf("the doctor sent %d mails", len(mails))
	}
}

// TestDoctorNamesTheSender: a relay that lets us in and refuses our mail is not fine.
func TestDoctorNamesTheSender(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.demoData()
	w.vars["DRAWBRIDGE_SMTP_URL"] = emailtest.NewServer(t, emailtest.Options{
		Mail: func(from string) error {
			return &smtp.SMTPError{
				Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "not " + from,
			}
		},
	}).URL()
	mail := examined(t, w, 1)["mail"]
	if mail.Finding != findingFailed || !strings.Contains(mail.Remedy, "DRAWBRIDGE_MAIL_FROM") ||
		!strings.Contains(mail.Detail, "did not accept the sender no-reply@localhost: 530") {
		t.Errorf("mail: %+v", mail)
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
	if keys := found["keys"]; keys.Finding != findingSkipped {
		t.Errorf("the keys of an old schema: %+v", keys)
	}
}

// TestDoctorOpensEverySealedValue replaces the key as an operator would, with
// each mistake that one can make on the way.
func TestDoctorOpensEverySealedValue(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "204 No Content")
	old, fresh := secret.GenerateKey(), secret.GenerateKey()
	ids := keyIDs(t, old+","+fresh)
	w.vars["SSL_CERT_FILE"], w.vars["DRAWBRIDGE_SECRETS_KEY"] = e.caFile, old
	w.subscribe(w.demoData(), e)
	keys := func(status int, configured string) checkup {
		t.Helper()
		w.vars["DRAWBRIDGE_SECRETS_KEY"] = configured
		return examined(t, w, status, "--https", e.url)["keys"]
	}
	if got := keys(0, old); got.Finding != findingOK || !strings.Contains(got.Detail, " by "+ids[0]) {
		t.Errorf("the key in use: %+v", got)
	}
	if got := keys(1, fresh); got.Finding != findingFailed || !strings.Contains(got.Detail, ids[0]) ||
		!strings.Contains(got.Remedy, "back behind the first") {
		t.Errorf("another key: %+v", got)
	}
	if got := keys(0, fresh+","+old); got.Finding != findingWarning ||
		!strings.Contains(got.Remedy, "drawbridge secrets rotate-key") {
		t.Errorf("halfway through the replacement: %+v", got)
	}
	if got := w.run("", "secrets", "rotate-key"); got.status != 0 {
		t.Fatalf("rotate-key ended with %d: %s", got.status, got.stderr)
	}
	if got := keys(0, fresh); got.Finding != findingOK {
		t.Errorf("after the replacement: %+v", got)
	}
	w.execute(w.open(t), `UPDATE subscriptions SET secret_sealed = left(secret_sealed, -4) || 'AAAA'`)
	if got := keys(1, fresh); got.Finding != findingFailed ||
		!strings.Contains(got.Detail, "subscriptions.secret_sealed of ") ||
		!strings.Contains(got.Remedy, "drawbridge subscription rotate") {
		t.Errorf("a damaged value: %+v", got)
	}
}

func keyIDs(t *testing.T, configured string) []string {
	t.Helper()
	ring, err := secret.ParseKeyring(configured)
	if err != nil {
		t.Fatal(err)
	}
	return ring.IDs()
}

// TestDoctorTellsOfAHold looks at a restored database before the first process
// starts there, while it holds, and after the decision.
func TestDoctorTellsOfAHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.demoData()
	guard := func(status int) checkup {
		t.Helper()
		return examined(t, w, status)["restore"]
	}
	db := w.open(t)
	w.execute(db, `INSERT INTO installation (identity, recorded_at) VALUES ('another', now())`)
	if got := guard(0); got.Finding != findingWarning || !strings.Contains(got.Detail, "restored") {
		t.Errorf("before the first start: %+v", got)
	}
	w.serve("--roles", "api").stop()
	if got := guard(1); got.Finding != findingFailed || !strings.Contains(got.Detail, "since 20") ||
		!strings.Contains(got.Detail, "e-mails") ||
		!strings.Contains(got.Remedy, "drawbridge restore release") {
		t.Errorf("while it holds: %+v", got)
	}
	w.run("", "restore", "release", "--deliveries", "send", "--mails", "send", "--reason", "ok")
	if got := guard(0); got.Finding != findingOK || got.Remedy != "" {
		t.Errorf("after the decision: %+v", got)
	}
}

// Behind a proxy that was not named everybody has one address: doctor says so, and so
// does the start.
func TestAnUnnamedProxyIsDoubtful(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.demoData()
	w.vars["DRAWBRIDGE_PUBLIC_URL"] = "https://bridge.example"
	const name = "DRAWBRIDGE_TRUSTED_PROXIES"
	found := examined(t, w, 0)["settings"]
	if found.Finding != findingWarning || !strings.Contains(found.Detail, name) {
		t.Errorf("the doctor finds %+v", found)
	}
	if logged := w.serve().logged(); strings.Count(logged, name) != 1 {
		t.Errorf("the start logged %s", logged)
	}
	w.vars[name] = "10.0.0.0/8"
	if found := examined(t, w, 0)["settings"]; found.Finding != findingOK {
		t.Errorf("with the proxy named: %+v", found)
	}
}
