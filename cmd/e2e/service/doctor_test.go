package service

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/secret"
)

func TestDoctorFindsAHealthyInstallation(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	mail := emailtest.NewServer(t, emailtest.Options{})
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_SMTP_URL"] = mail.URL()
	w.DemoData()
	found := e2etest.Doctor(t, w, 0, "--https", e.URL)
	way := found["https"]
	if way.Finding != e2etest.FindingWarning || !strings.Contains(way.Detail, "valid until") {
		t.Errorf("an endpoint whose certificate ends within the hour: %+v", way)
	}
	for _, name := range []string{
		"settings", "database", "migrations", "clock", "keys", "restore", "bucket", "mail",
	} {
		if found[name].Finding != e2etest.FindingOK || found[name].Remedy != "" {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	if got := found["mail"].Detail; !strings.Contains(got, "answered without encryption, was given "+
		"no sign-in and accepted the sender no-reply@localhost.") {
		t.Errorf("the doctor says of the mail server %q", got)
	}
	if mails := mail.Messages(); len(mails) > 0 {
		t.Errorf("the doctor sent %d mails", len(mails))
	}
}

// TestDoctorNamesTheSender: a relay that accepts our sign-in but refuses our sender is not fine.
func TestDoctorNamesTheSender(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.DemoData()
	w.Env["DRAWBRIDGE_SMTP_URL"] = emailtest.NewServer(t, emailtest.Options{
		Mail: func(from string) error {
			return &smtp.SMTPError{
				Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "not " + from,
			}
		},
	}).URL()
	mail := e2etest.Doctor(t, w, 1)["mail"]
	if mail.Finding != e2etest.FindingFailed ||
		!strings.Contains(mail.Remedy, "DRAWBRIDGE_MAIL_FROM") ||
		!strings.Contains(mail.Detail, "did not accept the sender no-reply@localhost: 530") {
		t.Errorf("mail: %+v", mail)
	}
}

// TestDoctorSaysWhatToDo breaks each thing that the service depends on.
func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	blocked := filepath.Join(w.Folder, "blobs")
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
	w.Env["DRAWBRIDGE_SMTP_URL"] = "smtp://sam:hunter2@" + nobody
	found := e2etest.Doctor(t, w, 1, "--https", "https://"+nobody)
	for name, remedy := range map[string]string{
		"mail": "DRAWBRIDGE_SMTP_URL", "https": "firewall",
	} {
		if found[name].Finding != e2etest.FindingFailed ||
			!strings.Contains(found[name].Remedy, remedy) ||
			strings.Contains(found[name].Detail, "hunter2") {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	w.Env["DRAWBRIDGE_BLOB_URL"] = "file://" + blocked
	if found := e2etest.Doctor(t, w, 1); found["settings"].Finding != e2etest.FindingFailed {
		t.Errorf("a bucket that is a file: %+v", found)
	}
	w.Env["DATABASE_URL"] = "postgres://sam:hunter2@" + nobody + "/x"
	found = e2etest.Doctor(t, w, 1)
	if database := found["database"]; database.Finding != e2etest.FindingFailed ||
		!strings.Contains(database.Remedy, "DATABASE_URL") ||
		strings.Contains(database.Detail, "hunter2") {
		t.Errorf("no database: %+v", found)
	}
	w.Env["DRAWBRIDGE_LISTEN"] = "nowhere"
	found = e2etest.Doctor(t, w, 1)
	if !strings.Contains(found["settings"].Detail, "DRAWBRIDGE_LISTEN") {
		t.Errorf("wrong settings: %+v", found)
	}
}

func TestDoctorMissesMigrations(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	if got := w.Run("", "migrate", "down"); got.Status != 0 {
		t.Fatalf("migrate down ended with %d: %s", got.Status, got.Stderr)
	}
	found := e2etest.Doctor(t, w, 1)
	if schema := found["migrations"]; schema.Finding != e2etest.FindingFailed ||
		schema.Remedy != "Run drawbridge migrate up as the role that owns the schema." {
		t.Errorf("%+v", schema)
	}
	if keys := found["keys"]; keys.Finding != e2etest.FindingSkipped {
		t.Errorf("the keys of an old schema: %+v", keys)
	}
}

// TestDoctorOpensEverySealedValue replaces the key as an operator would, including each
// mistake that one can make in the process.
func TestDoctorOpensEverySealedValue(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	old, fresh := secret.GenerateKey(), secret.GenerateKey()
	ids := keyIDs(t, old+","+fresh)
	w.Env["SSL_CERT_FILE"], w.Env["DRAWBRIDGE_SECRETS_KEY"] = e.CAFile, old
	w.Subscribe(w.DemoData(), e.URL)
	keys := func(status int, configured string) e2etest.Check {
		t.Helper()
		w.Env["DRAWBRIDGE_SECRETS_KEY"] = configured
		return e2etest.Doctor(t, w, status, "--https", e.URL)["keys"]
	}
	if got := keys(0, old); got.Finding != e2etest.FindingOK ||
		!strings.Contains(got.Detail, " by "+ids[0]) {
		t.Errorf("the key in use: %+v", got)
	}
	if got := keys(1, fresh); got.Finding != e2etest.FindingFailed ||
		!strings.Contains(got.Detail, ids[0]) ||
		!strings.Contains(got.Remedy, "back after the first") {
		t.Errorf("another key: %+v", got)
	}
	s := w.Serve() // logs it once, before a subscription needs the key
	s.WaitForLog("encrypted values name keys")
	s.WaitForLog(ids[0])
	s.Stop()
	if got := keys(0, fresh+","+old); got.Finding != e2etest.FindingWarning ||
		!strings.Contains(got.Remedy, "drawbridge secrets rotate-key") {
		t.Errorf("halfway through the replacement: %+v", got)
	}
	if got := w.Run("", "secrets", "rotate-key"); got.Status != 0 {
		t.Fatalf("rotate-key ended with %d: %s", got.Status, got.Stderr)
	}
	if got := keys(0, fresh); got.Finding != e2etest.FindingOK {
		t.Errorf("after the replacement: %+v", got)
	}
	w.Execute(w.Open(t), `UPDATE subscriptions SET secret_sealed = left(secret_sealed, -4) || 'AAAA'`)
	if got := keys(1, fresh); got.Finding != e2etest.FindingFailed ||
		!strings.Contains(got.Detail, "subscriptions.secret_sealed of ") ||
		!strings.Contains(got.Remedy, "drawbridge subscription update") {
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

// TestDoctorTellsOfAQuarantine runs the doctor on a restored database before the first
// process starts there, in quarantine, and after its end.
func TestDoctorTellsOfAQuarantine(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.DemoData()
	guard := func(status int) e2etest.Check {
		t.Helper()
		return e2etest.Doctor(t, w, status)["restore"]
	}
	db := w.Open(t)
	w.Execute(db, `INSERT INTO installation (identity, recorded_at) VALUES ('another', now())`)
	if got := guard(0); got.Finding != e2etest.FindingWarning ||
		!strings.Contains(got.Detail, "restored") {
		t.Errorf("before the first start: %+v", got)
	}
	w.Serve("--roles", "api").Stop()
	if got := guard(1); got.Finding != e2etest.FindingFailed ||
		!strings.Contains(got.Detail, "since 20") ||
		!strings.Contains(got.Detail, "e-mails") ||
		!strings.Contains(got.Remedy, "drawbridge restore release") {
		t.Errorf("in quarantine: %+v", got)
	}
	w.Run("", "restore", "release", "--deliveries", "send", "--mails", "send", "--reason", "ok")
	if got := guard(0); got.Finding != e2etest.FindingOK || got.Remedy != "" {
		t.Errorf("after the decision: %+v", got)
	}
}

// Behind a proxy that is not in the settings all clients have one address: the doctor says so,
// and so does the service when it starts.
func TestAnUnnamedProxyIsDoubtful(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.DemoData()
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://bridge.example"
	const name = "DRAWBRIDGE_TRUSTED_PROXIES"
	found := e2etest.Doctor(t, w, 0)["settings"]
	if found.Finding != e2etest.FindingWarning || !strings.Contains(found.Detail, name) {
		t.Errorf("the doctor finds %+v", found)
	}
	if logged := w.Serve().Logged(); strings.Count(logged, name) != 1 {
		t.Errorf("the start logged %s", logged)
	}
	w.Env[name] = "10.0.0.0/8"
	if found := e2etest.Doctor(t, w, 0)["settings"]; found.Finding != e2etest.FindingOK {
		t.Errorf("with the proxy named: %+v", found)
	}
}

// TestConfigEndsAsServeDoes: config reports what would keep a process from starting, even errors
// that are not visible in the form of a setting.
func TestConfigEndsAsServeDoes(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	cert, key, _ := e2etest.WritePair(t, w.Folder)
	_, other, _ := e2etest.WritePair(t, t.TempDir())
	for name, wrong := range map[string]map[string]string{
		"DRAWBRIDGE_SECRETS_KEY": {"DRAWBRIDGE_SECRETS_KEY": "base64key://short"},
		"DRAWBRIDGE_BLOB_URL":    {"DRAWBRIDGE_BLOB_URL": "file://relative/x"},
		"a bucket in a file":     {"DRAWBRIDGE_BLOB_URL": "file://" + cert},
		"another certificate":    {"DRAWBRIDGE_TLS_CERT": cert, "DRAWBRIDGE_TLS_KEY": other},
		"no key":                 {"DRAWBRIDGE_TLS_CERT": cert, "DRAWBRIDGE_TLS_KEY": key + ".none"},
		"a password as it is":    {"DRAWBRIDGE_SMTP_URL": "smtp://sam:12/hunter2@mail.internal"},
		"a parameter":            {"DRAWBRIDGE_SMTP_URL": "smtp://mail.internal?x=hunter2"},
		"nothing":                nil,
	} {
		run := *w
		run.Env = maps.Clone(w.Env)
		maps.Copy(run.Env, wrong)
		var served e2etest.Result
		if wrong != nil {
			served = run.Run("", "serve")
		}
		got := run.Run("", "config")
		if got.Status != served.Status || wrong != nil && got.Status != e2etest.ExitUsage {
			t.Errorf("%s: config ended with %d: %s; serve with %d: %s",
				name, got.Status, got.Stderr, served.Status, served.Stderr)
		}
		examined := run.Run("", "doctor")
		failed := strings.Contains(examined.Stderr, "failed checks: settings")
		if failed != (wrong != nil) {
			t.Errorf("%s: doctor said %s%s", name, examined.Stdout, examined.Stderr)
		}
		for variable := range wrong {
			if !strings.Contains(got.Stderr, variable) || !strings.Contains(examined.Stdout, variable) {
				t.Errorf("%s: it is not named: %s%s", name, got.Stderr, examined.Stdout)
			}
		}
		if said := got.Stdout + got.Stderr + examined.Stdout; strings.Contains(said, "hunter2") {
			t.Errorf("%s: a password shows: %s", name, said)
		}
	}
}
