package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// TestServiceOwnsNothing runs the service as the restricted role of
// docs/deploy/roles.sql: draws, deliveries, mails, console, chores. Its log must
// not name a single missing permission.
func TestServiceOwnsNothing(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "200 OK")
	roles := w.twoRoles()
	w.vars["SSL_CERT_FILE"] = e.caFile
	w.vars["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.vars["DATABASE_URL"] = roles.owner
	data := w.demoData()
	w.subscribe(data, e)

	w.vars["DATABASE_URL"] = roles.service
	db := w.open(t)
	owner := *w
	owner.vars = map[string]string{"DATABASE_URL": roles.owner}
	_, err := owner.open(t).ExecContext(t.Context(),
		`DROP TABLE `+pq.QuoteIdentifier(time.Now().UTC().AddDate(0, 3, 0).Format("attempts_y2006m01")))
	if err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	if status := draw(t, s.url, data, "first_regular"); status != http.StatusOK {
		t.Errorf("the draw answered %d", status)
	}
	uid, _ := e.next(t).value("x-drawbridge-delivery")
	w.waitForState(uid, "delivered")
	if got := w.run("", "delivery", "resend", uid, "--reason", "as the service"); got.status != 0 {
		t.Errorf("re-sending ended with %d: %s", got.status, got.stderr)
	}
	e.next(t)
	w.run("", "retention", "run")
	if !signsIn(t, s.url, data.Users[0]) {
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
	var partitions int
	err = db.GetContext(t.Context(), &partitions, `SELECT count(*) FROM pg_class WHERE relname = $1`,
		time.Now().UTC().AddDate(0, 3, 0).Format("attempts_y2006m01"))
	if err != nil || partitions != 1 {
		t.Errorf("the missing partition was not made (%v)", err)
	}
	if s.stop() != 0 {
		t.Error("the service ended with a fault")
	}
	for line := range strings.Lines(s.logged()) {
		if strings.Contains(line, "permission denied") || strings.Contains(line, "must be owner") {
			t.Errorf("logged %s", line)
		}
	}
}

// roleURLs connect to one database as each of the two roles.
type roleURLs struct{ owner, service string }

// twoRoles gives a fresh database to an owner, migrates it and applies the
// documented file, with names of the test's own.
func (w *world) twoRoles() roleURLs {
	w.t.Helper()
	admin := w.vars["DATABASE_URL"]
	suffix := strings.ReplaceAll(uuid.NewString()[:13], "-", "")
	owner, service := "owner_"+suffix, "service_"+suffix
	db := w.open(w.t)
	statements := []string{
		`CREATE ROLE ` + owner + ` LOGIN PASSWORD 'o'`,
		`CREATE ROLE ` + service + ` LOGIN PASSWORD 's'`,
		`DROP SCHEMA public CASCADE`,
		`CREATE SCHEMA public AUTHORIZATION ` + owner,
	}
	for _, statement := range statements {
		w.execute(db, statement)
	}
	w.t.Cleanup(func() {
		w.execute(db, `DROP OWNED BY `+service)
		w.execute(db, `DROP OWNED BY `+owner+` CASCADE`)
		w.execute(db, `DROP ROLE `+owner+`, `+service)
	})
	w.vars["DATABASE_URL"] = asRole(w.t, admin, owner, "o")
	if got := w.run("", "migrate", "up"); got.status != 0 {
		w.t.Fatalf("the owner's migration ended with %d: %s", got.status, got.stderr)
	}
	for range 2 { // it may be run again
		w.tool("psql", "--no-psqlrc", "--quiet", "--dbname="+admin, "--set=owner="+owner,
			"--set=service="+service, "--file=../../docs/deploy/roles.sql")
	}
	return roleURLs{w.vars["DATABASE_URL"], asRole(w.t, admin, service, "s")}
}

func (w *world) execute(db *postgres.DB, statement string) {
	w.t.Helper()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		w.t.Errorf("%s: %v", statement, err)
	}
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

// signsIn tells whether a demo user gets into the console.
func signsIn(t *testing.T, base string, user demoUser) bool {
	t.Helper()
	form := url.Values{"email": {user.Email}, "password": {user.Password}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		base+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusSeeOther && len(response.Cookies()) > 0
}
