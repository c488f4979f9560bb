package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

func TestWrongUsageEndsWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	created := d.document(t, "partner", "create", "--name", "P")
	partner, _ := created["partner_uid"].(string)
	unknown := uuid.NewString()
	subscribe := []string{"subscription", "create", "--partner", partner}
	with := func(more ...string) []string { return slices.Concat(subscribe, more) }
	for _, test := range []struct {
		args   []string
		status int
		names  string
	}{
		{[]string{}, 2, "expected"},
		{[]string{"fly"}, 2, "fly"},
		{[]string{"serve", "--roles", "cook"}, 2, "--roles"},
		{[]string{"migrate", "sideways"}, 2, "sideways"},
		{[]string{"partner", "create"}, 2, "--name"},
		{[]string{"partner", "create", "--name", " "}, 2, "name"},
		{[]string{"merchant", "create", "--partner", "x", "--name", "M"}, 2, "partner"},
		{[]string{"merchant", "create", "--partner", unknown, "--name", "M"}, 1, unknown},
		{[]string{"client", "create", "--partner", "x"}, 2, "partner"},
		{[]string{"client", "rotate", "nobody"}, 1, "nobody"},
		{[]string{"client", "revoke"}, 2, "client"},
		{productArgs("--schedule", "40,40"), 2, "schedule"},
		{productArgs("--fee", "-1"), 2, "fee"},
		{productArgs("--min", "200000.00"), 2, "min"},
		{productArgs("--rate", "NaN"), 2, "rate"},
		{with("--url", "http://example.com/", "--event", "all"), 2, "url"},
		{with("--url", "https://localhost/", "--event", "all"), 2, "url"},
		{with("--url", "https://hook.example/", "--event", "birthday"), 2, "event"},
		{with("--url", "https://hook.example/"), 2, "event"},
		{with("--url", "https://hook.example/", "--event", "all", "--auth", "magic"), 2, "auth"},
		{with("--url", "https://hook.example/", "--event", "all", "--secret", "short"), 2, "secret"},
		{with("--url", "https://hook.example/", "--event", "all", "--header", "host: x"), 2, "host"},
		{with("--url", "https://hook.example/", "--event", "all", "--header", "nocolon"), 2, "header"},
		{with("--url", "https://hook.example/", "--event", "all", "--merchant", unknown), 2, "merchant"},
		{[]string{"subscription", "show", unknown}, 1, unknown},
		{[]string{"subscription", "pause", "x"}, 2, "subscription"},
		{[]string{"subscription", "list", "--limit", "501"}, 2, "--limit"},
		{[]string{"delivery", "list", "--limit", "0"}, 2, "--limit"},
		{[]string{"delivery", "list", "--state", "lost"}, 2, "--state"},
		{[]string{"delivery", "list", "--event", "lost"}, 2, "--event"},
		{[]string{"delivery", "list", "--since", "yesterday"}, 2, "--since"},
		{[]string{"delivery", "list", "--cursor", "%%%"}, 2, "cursor"},
		{[]string{"delivery", "show", unknown}, 1, unknown},
		{[]string{"delivery", "resend"}, 2, "--subscription"},
		{[]string{"delivery", "resend", unknown, "--state", "failed"}, 2, "not both"},
		{[]string{"delivery", "resend", unknown}, 1, unknown},
		{
			[]string{"user", "create", "--email", "a@b.example", "--name", "A", "--role", "king"},
			2, "password",
		},
		{[]string{"user", "disable", "nobody@b.example"}, 1, "nobody@b.example"},
		{[]string{"user", "disable", "--email", "nobody@b.example"}, 1, "nobody@b.example"},
		{[]string{"user", "disable"}, 2, "--email"},
	} {
		got := d.run(t, test.args...)
		if got.status != test.status || !strings.Contains(got.stderr, test.names) ||
			strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("%v ended with %d and said %q on stderr, %q on stdout; want %d and %q",
				test.args, got.status, got.stderr, got.stdout, test.status, test.names)
		}
	}
}

// productArgs are those of a good product with one flag replaced.
func productArgs(flag, value string) []string {
	args := []string{"product", "create"}
	for _, pair := range [][2]string{
		{"--code", "X"},
		{"--name", "X"},
		{"--term", "12"},
		{"--rate", "5"},
		{"--fee", "1"},
		{"--schedule", "100"},
		{"--min", "1.00"},
		{"--max", "9.00"},
	} {
		if pair[0] == flag {
			pair[1] = value
		}
		args = append(args, pair[0]+"="+pair[1])
	}
	return args
}

func TestWrongSettingsStopTheStart(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"DATABASE_URL":                       "mysql://x",
		"DRAWBRIDGE_ENV":                     "staging",
		"DRAWBRIDGE_PREPARED_STATEMENTS":     "maybe",
		"DRAWBRIDGE_LISTEN":                  "8080",
		"DRAWBRIDGE_PUBLIC_URL":              "drawbridge.example/x",
		"DRAWBRIDGE_BASE_PATH":               "/console",
		"DRAWBRIDGE_ROLES":                   "api,cook",
		"DRAWBRIDGE_DRAIN":                   "-1s",
		"DRAWBRIDGE_SECRETS_KEY":             "base64key://short",
		"DRAWBRIDGE_BLOB_URL":                "ftp://x",
		"DRAWBRIDGE_SMTP_URL":                "mail.example",
		"DRAWBRIDGE_MAIL_FROM":               "nobody",
		"DRAWBRIDGE_WEBHOOK_ALLOW":           "10.0.0.1",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP":      "perhaps",
		"DRAWBRIDGE_WEBHOOK_TIMEOUT":         "2h",
		"DRAWBRIDGE_WEBHOOK_RETRY":           "1m",
		"DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX": "-1s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.vars[name] = value
			got := w.run("", "serve")
			if got.status != 2 || !strings.Contains(got.stderr, name) ||
				strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
				t.Errorf("ended with %d and said %q, %q", got.status, got.stderr, got.stdout)
			}
		})
	}
}

func TestProductionRefusesDevelopmentDefaultsAllAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.vars["DRAWBRIDGE_ENV"] = "production"
	got := w.run("", "serve")
	for _, name := range []string{
		"DRAWBRIDGE_SECRETS_KEY", "DRAWBRIDGE_PUBLIC_URL",
	} {
		if !strings.Contains(got.stderr, name) {
			t.Errorf("%s is not named in %q", name, got.stderr)
		}
	}
	w.vars["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	w.vars["DRAWBRIDGE_SECRETS_KEY"] = "base64key://" +
		base64.StdEncoding.EncodeToString(make([]byte, 32))
	if guessed := w.run("", "serve"); guessed.status != 2 ||
		!strings.Contains(guessed.stderr, "one byte repeated") {
		t.Errorf("with a key of zeros it ended with %d: %s", guessed.status, guessed.stderr)
	}
	if demo := w.run("", "demo"); demo.status == 0 {
		t.Error("production loaded the demo data")
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run("", "serve", "--help")
	if got.status != 0 {
		t.Fatalf("ended with %d: %s", got.status, got.stderr)
	}
	for _, name := range []string{
		"DATABASE_URL", "DRAWBRIDGE_PREPARED_STATEMENTS", "DRAWBRIDGE_ENV",
		"DRAWBRIDGE_LISTEN", "DRAWBRIDGE_PUBLIC_URL",
		"DRAWBRIDGE_BASE_PATH", "DRAWBRIDGE_ROLES", "DRAWBRIDGE_DRAIN", "DRAWBRIDGE_SECRETS_KEY",
		"DRAWBRIDGE_BLOB_URL", "DRAWBRIDGE_SMTP_URL", "DRAWBRIDGE_MAIL_FROM", "DRAWBRIDGE_WEBHOOK_ALLOW",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP", "DRAWBRIDGE_WEBHOOK_TIMEOUT", "DRAWBRIDGE_WEBHOOK_RETRY",
		"DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX", "SSL_CERT_FILE",
	} {
		if !strings.Contains(got.stdout, name) {
			t.Errorf("serve --help does not name %s", name)
		}
	}
	for _, args := range [][]string{
		{"--help"}, {"migrate", "--help"}, {"subscription", "create", "--help"}, {"user", "--help"},
	} {
		if got := w.run("", args...); got.status != 0 || got.stdout == "" {
			t.Errorf("%v ended with %d: %s", args, got.status, got.stderr)
		}
	}
}

func TestConcurrentMigrationsAreSafe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.run("", "migrate", "down")
	}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if got := w.run("", "migrate", "up", "--json"); got.status != 0 {
				t.Errorf("ended with %d: %s", got.status, got.stderr)
			}
		})
	}
	group.Wait()
	var status struct {
		Migrations []struct {
			Applied bool `json:"applied"`
		} `json:"migrations"`
	}
	w.json(&status, "migrate", "status")
	for i, step := range status.Migrations {
		if !step.Applied {
			t.Errorf("migration %d is missing", i+1)
		}
	}
}

func TestDemoIsIdempotent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.demoData(), w.demoData()
	one, _ := json.Marshal(first)
	two, _ := json.Marshal(second)
	if diff := cmp.Diff(string(one), string(two)); diff != "" {
		t.Errorf("the second run differs:\n%s", diff)
	}
	if len(first.Loans) < 7 || len(first.Products) < 4 || len(first.Users) != 3 ||
		len(first.Partners) != 2 || len(first.Partners[1].Clients[0].Merchants) != 3 {
		t.Errorf("the data set is incomplete: %s", one)
	}
}

func TestSubscriptionLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	partner := w.demoData().Partners[0].UID.String()
	var made subscriptionJSON
	w.json(&made, "subscription", "create", "--partner", partner, "--url", "https://hook.example/in",
		"--event", "document.sent", "--event", "document.signed", "--auth", "hmac",
		"--header", "X-Api-Key: k1, k2", "--header", "X-Empty:")
	if made.Secret == nil || *made.Secret == "" || made.State != "active" ||
		!cmp.Equal(made.Events, []string{"document.sent", "document.signed"}) ||
		len(made.Headers) != 2 || made.Headers[0].Name != "x-api-key" ||
		made.Headers[0].Value != nil || !made.Headers[0].Secret || made.Headers[1].Secret ||
		made.Headers[1].Value == nil {
		t.Errorf("created %+v", made)
	}
	uid := made.UID.String()
	var changed subscriptionJSON
	w.json(&changed, "subscription", "update", "--event", "all", uid, "--no-headers")
	if changed.Secret != nil || len(changed.Headers) != 0 ||
		!cmp.Equal(changed.Events, []string{"all"}) {
		t.Errorf("changed to %+v", changed)
	}
	var rotated subscriptionJSON
	w.json(&rotated, "subscription", "update", uid, "--secret", "brand-new-secret")
	if rotated.Secret == nil || *rotated.Secret != "brand-new-secret" {
		t.Errorf("rotated to %+v", rotated)
	}
	for text, want := range map[string]*int{"25": new(25), "0": nil} {
		var paced subscriptionJSON
		w.json(&paced, "subscription", "update", uid, "--rate", text)
		if !cmp.Equal(paced.Rate, want) {
			t.Errorf("--rate %s made the rate %v", text, paced.Rate)
		}
	}
	w.json(new(map[string]any), "subscription", "test", uid)
	for _, step := range []struct{ verb, state string }{
		{"pause", "paused"}, {"pause", "paused"}, {"resume", "active"}, {"delete", "deleted"},
	} {
		var after subscriptionJSON
		w.json(&after, "subscription", step.verb, uid)
		if string(after.State) != step.state {
			t.Errorf("%s left it %s", step.verb, after.State)
		}
	}
	var list struct {
		Subscriptions []subscriptionJSON `json:"subscriptions"`
	}
	w.json(&list, "subscription", "list", "--partner", partner)
	if len(list.Subscriptions) != 0 {
		t.Errorf("a deleted subscription is listed: %+v", list)
	}
	if got := w.run("", "subscription", "resume", uid); got.status != 1 {
		t.Errorf("resuming a deleted subscription ended with %d", got.status)
	}
	want := "create, update, rotate_secret, update, update, test, pause, pause, resume, delete"
	if got := w.audited(t, "subscription", uid); got != want {
		t.Errorf("the audit log says %s, want %s", got, want)
	}
}

// audited lists what the audit log says of a subject, after checking that it holds
// no secret.
func (w *world) audited(t *testing.T, kind, uid string) string {
	t.Helper()
	db, err := postgres.Open(t.Context(), w.vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var actions string
	var leaks int
	err = db.QueryRowContext(t.Context(), `
		SELECT string_agg(split_part(action, '.', 2), ', ' ORDER BY entry_id),
		       count(*) FILTER (WHERE concat(before, after) LIKE '%brand-new-secret%')
		  FROM audit_log
		 WHERE subject_kind = $1
		   AND subject = $2`, kind, uid).Scan(&actions, &leaks)
	if err != nil || leaks > 0 {
		t.Errorf("%d entries show a secret (%v)", leaks, err)
	}
	return actions
}

func TestUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.run("a long enough password\n", "user", "create", "--email", "Ada@Lender.Example",
		"--name", "Ada", "--role", "admin", "--json")
	if made.status != 0 || !strings.Contains(made.stdout, `"ada@lender.example"`) {
		t.Fatalf("ended with %d: %s%s", made.status, made.stdout, made.stderr)
	}
	for name, test := range map[string]struct {
		password, email, role string
		names                 string
		status                int
	}{
		"taken": {"a long enough password", "ADA@lender.example", "admin", "email", exitFailed},
		"short": {"short", "b@lender.example", "admin", "password", exitUsage},
		"role":  {"a long enough password", "b@lender.example", "king", "role", exitUsage},
		"mail":  {"a long enough password", "b", "admin", "email", exitUsage},
	} {
		got := w.run(test.password, "user", "create", "--name", "B",
			"--email", test.email, "--role", test.role)
		if got.status != test.status || !strings.Contains(got.stderr, test.names) {
			t.Errorf("%s: ended with %d, want %d: %s", name, got.status, test.status, got.stderr)
		}
	}
	for _, address := range [][]string{{"ada@lender.example"}, {"--email", "ada@lender.example"}} {
		got := w.run("another long password", append([]string{"user", "password"}, address...)...)
		if got.status != 0 {
			t.Errorf("setting a password of %v ended with %d: %s", address, got.status, got.stderr)
		}
	}
	if got := w.run("", "user", "disable", "ada@lender.example", "--json"); got.status != 0 ||
		!strings.Contains(got.stdout, `"disabled": true`) {
		t.Errorf("disabling ended with %d: %s", got.status, got.stdout)
	}
}

func TestConfigShowsWhatTheServiceWouldUse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.variables["DRAWBRIDGE_SMTP_URL"] = "smtp://u:hunter2@mail.internal:587"
	got := d.document(t, "config")
	settings, _ := got["settings"].([]any)
	named := map[string]map[string]any{}
	for _, item := range settings {
		setting, _ := item.(map[string]any)
		name, _ := setting["name"].(string)
		named[name] = setting
	}
	if mail := named["DRAWBRIDGE_SMTP_URL"]; mail["value"] != "smtp://****@mail.internal:587" ||
		mail["source"] != "environment" {
		t.Errorf("the mail server shows as %v", mail)
	}
	d.variables["DRAWBRIDGE_LISTEN"] = "nowhere"
	d.variables["DRAWBRIDGE_ENV"] = "production"
	faulty := d.run(t, "config")
	if faulty.status != exitUsage || strings.Contains(faulty.stdout+faulty.stderr, "hunter2") {
		t.Errorf("faulty settings end with %d:\n%s%s", faulty.status, faulty.stdout, faulty.stderr)
	}
	for _, name := range []string{"DRAWBRIDGE_LISTEN", "DRAWBRIDGE_PUBLIC_URL"} {
		if !strings.Contains(faulty.stderr, name) {
			t.Errorf("%q does not name %s", faulty.stderr, name)
		}
	}
}
