package service

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// TestServiceOwnsNothing runs the service as the restricted role of
// docs/deploy/roles.sql: draws, deliveries, mails, console, chores. Its log must
// not name a single missing permission.
func TestServiceOwnsNothing(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	roles := twoRoles(w)
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.Env["DATABASE_URL"] = roles.owner.url
	data := w.DemoData()
	w.Subscribe(data, e.URL)

	w.Env["DATABASE_URL"] = roles.service.url
	db := w.Open(t)
	owner := *w
	owner.Env = map[string]string{"DATABASE_URL": roles.owner.url}
	// The last month of the partitions made in advance; from the 1st, as some months have no 31st.
	last := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).AddDate(0, 3, 0)
	partition := last.Format("attempts_y2006m01")
	_, err := owner.Open(t).ExecContext(t.Context(), `DROP TABLE `+pq.QuoteIdentifier(partition))
	if err != nil {
		t.Fatal(err)
	}
	s := w.Serve()
	if status := e2etest.RequestDraw(t, s.URL, data, "first_regular"); status != http.StatusOK {
		t.Errorf("the draw answered %d", status)
	}
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
	if got := w.Run("", "delivery", "resend", uid, "--reason", "as the service"); got.Status != 0 {
		t.Errorf("re-sending ended with %d: %s", got.Status, got.Stderr)
	}
	e.Next(t)
	w.Run("", "retention", "run")
	if !e2etest.SignsIn(t, s.URL, data.Users[0]) {
		t.Error("nobody can sign in to the console")
	}
	for _, statement := range []string{
		`CREATE TABLE mine ()`,
		`CREATE INDEX ON events (status)`,
		`DROP TABLE loans`,
		`ALTER TABLE audit_log DISABLE TRIGGER ALL`,
		`UPDATE audit_log SET actor = 'nobody'`,
		`DELETE FROM audit_log`,
		`TRUNCATE audit_log`,
		`UPDATE goose_db_version SET is_applied = false`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		if err == nil || !(strings.Contains(err.Error(), "permission denied") ||
			strings.Contains(err.Error(), "must be owner")) {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if pgtest.Count(t, db, `SELECT count(*) FROM pg_class WHERE relname = $1`, partition) != 1 {
		t.Error("the missing partition was not made")
	}
	if s.Stop() != 0 {
		t.Error("the service ended with a fault")
	}
	restoreWithRoles(w, roles, backUp(w))
	for line := range strings.Lines(s.Logged()) {
		if strings.Contains(line, "permission denied") || strings.Contains(line, "must be owner") {
			t.Errorf("logged %s", line)
		}
	}
}

// TestTheOwnerMigrates runs commands as the role of the service on a database that was never
// migrated: they say to migrate as the owner.
func TestTheOwnerMigrates(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	roles := makeRoles(w)
	applyRoles(w, w.Env["DATABASE_URL"], roles)
	w.Env["DATABASE_URL"] = roles.service.url
	const owner = "as the role that owns the schema"
	schema := e2etest.Doctor(t, w, e2etest.ExitFailed)["migrations"]
	if schema.Finding != e2etest.FindingFailed || !strings.Contains(schema.Remedy, owner) ||
		!strings.HasPrefix(schema.Detail, "The schema lacks ") {
		t.Errorf("doctor found %+v", schema)
	}
	for _, args := range [][]string{{"serve"}, {"migrate", "up"}} {
		if got := w.Run("", args...); got.Status != e2etest.ExitFailed ||
			!strings.Contains(got.Stderr, owner) {
			t.Errorf("%v ended with %d: %s", args, got.Status, got.Stderr)
		}
	}
	if got := w.Run("", "migrate", "status"); got.Status != 0 ||
		strings.Contains(got.Stdout, "applied") || !strings.Contains(got.Stdout, "missing") {
		t.Errorf("the status ended with %d: %s%s", got.Status, got.Stdout, got.Stderr)
	}
	w.Env["DRAWBRIDGE_ENV"] = "production"
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	if got := w.Run("", "restore", "show"); got.Status != e2etest.ExitFailed ||
		!strings.Contains(got.Stderr, owner) {
		t.Errorf("in production a command ended with %d: %s", got.Status, got.Stderr)
	}
	w.Serve().WaitForLog("waiting for the schema")
}

// restoreWithRoles restores a dump as the manual says for two roles: afterwards the owner owns
// everything again, and the service may use it.
func restoreWithRoles(w *e2etest.Harness, roles roleURLs, dump string) {
	w.T.Helper()
	restored := e2etest.NewOn(w.T, pgtest.URL(w.T))
	admin := restored.Env["DATABASE_URL"]
	restored.Execute(restored.Open(w.T), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	applyRoles(restored, admin, roles)
	restored.Tool("pg_restore", "--exit-on-error", "--dbname="+admin, dump)
	restored.Env = maps.Clone(w.Env)
	restored.Env["DATABASE_URL"] = asRole(w.T, admin, roles.owner.name, "o")
	if got := restored.Run("", "migrate", "up"); got.Status != 0 {
		w.T.Errorf("the owner's migration of what was restored ended with %d: %s", got.Status, got.Stderr)
	}
	restored.Env["DATABASE_URL"] = asRole(w.T, admin, roles.service.name, "s")
	if got := restored.Run("", "backup", "record"); got.Status != 0 {
		w.T.Errorf("a change of what was restored ended with %d: %s", got.Status, got.Stderr)
	}
}

// roleURLs are the URLs of one database for each of the two roles.
type roleURLs struct{ owner, service roleURL }

type roleURL struct{ name, url string }

// twoRoles gives a fresh database to an owner, migrates it and applies the documented
// file, with role names of the test.
func twoRoles(w *e2etest.Harness) roleURLs {
	w.T.Helper()
	admin := w.Env["DATABASE_URL"]
	roles := makeRoles(w)
	w.Env["DATABASE_URL"] = roles.owner.url
	if got := w.Run("", "migrate", "up"); got.Status != 0 {
		w.T.Fatalf("the owner's migration ended with %d: %s", got.Status, got.Stderr)
	}
	for range 2 { // it can be applied repeatedly
		applyRoles(w, admin, roles)
	}
	return roles
}

// makeRoles gives a fresh empty database to an owner.
func makeRoles(w *e2etest.Harness) roleURLs {
	w.T.Helper()
	admin := w.Env["DATABASE_URL"]
	suffix := strings.ReplaceAll(uuid.NewString()[:13], "-", "")
	owner, service := "owner_"+suffix, "service_"+suffix
	db := w.Open(w.T)
	statements := []string{
		`CREATE ROLE ` + owner + ` LOGIN PASSWORD 'o'`,
		`CREATE ROLE ` + service + ` LOGIN PASSWORD 's'`,
		`DROP SCHEMA public CASCADE`,
		`CREATE SCHEMA public AUTHORIZATION ` + owner,
	}
	for _, statement := range statements {
		w.Execute(db, statement)
	}
	w.T.Cleanup(func() {
		w.Execute(db, `DROP OWNED BY `+service)
		w.Execute(db, `DROP OWNED BY `+owner+` CASCADE`)
		w.Execute(db, `DROP ROLE `+owner+`, `+service)
	})
	return roleURLs{
		roleURL{owner, asRole(w.T, admin, owner, "o")},
		roleURL{service, asRole(w.T, admin, service, "s")},
	}
}

// applyRoles applies the documented file as a superuser.
func applyRoles(w *e2etest.Harness, admin string, roles roleURLs) {
	w.T.Helper()
	w.Tool("psql", "--no-psqlrc", "--quiet", "--dbname="+admin, "--set=owner="+roles.owner.name,
		"--set=service="+roles.service.name, "--file=../../../docs/deploy/roles.sql")
}

func asRole(t *testing.T, address, role, password string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(role, password)
	return parsed.String()
}
