package service

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/cmd/e2e/e2etest"
)

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
		"DRAWBRIDGE_EGRESS_CIDRS":            "203.0.113.7",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP":      "perhaps",
		"DRAWBRIDGE_WEBHOOK_TIMEOUT":         "2h",
		"DRAWBRIDGE_WEBHOOK_RETRY":           "1m",
		"DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX": "-1s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2etest.New(t)
			w.Env[name] = value
			got := w.Run("", "serve")
			if got.Status != 2 || !strings.Contains(got.Stderr, name) ||
				strings.Count(got.Stderr, "\n") != 1 || got.Stdout != "" {
				t.Errorf("ended with %d and said %q, %q", got.Status, got.Stderr, got.Stdout)
			}
		})
	}
}

func TestProductionRefusesDevelopmentDefaultsAllAtOnce(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_ENV"] = "production"
	got := w.Run("", "serve")
	for _, name := range []string{
		"DRAWBRIDGE_SECRETS_KEY", "DRAWBRIDGE_PUBLIC_URL",
	} {
		if !strings.Contains(got.Stderr, name) {
			t.Errorf("%s is not named in %q", name, got.Stderr)
		}
	}
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = "base64key://" +
		base64.StdEncoding.EncodeToString(make([]byte, 32))
	if guessed := w.Run("", "serve"); guessed.Status != 2 ||
		!strings.Contains(guessed.Stderr, "one byte repeated") {
		t.Errorf("with a key of zeros it ended with %d: %s", guessed.Status, guessed.Stderr)
	}
	if demo := w.Run("", "demo"); demo.Status == 0 {
		t.Error("production loaded the demo data")
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	got := w.Run("", "serve", "--help")
	if got.Status != 0 {
		t.Fatalf("ended with %d: %s", got.Status, got.Stderr)
	}
	for _, name := range []string{
		"DATABASE_URL", "DRAWBRIDGE_PREPARED_STATEMENTS", "DRAWBRIDGE_ENV",
		"DRAWBRIDGE_LISTEN", "DRAWBRIDGE_PUBLIC_URL",
		"DRAWBRIDGE_BASE_PATH", "DRAWBRIDGE_ROLES", "DRAWBRIDGE_DRAIN", "DRAWBRIDGE_SECRETS_KEY",
		"DRAWBRIDGE_BLOB_URL", "DRAWBRIDGE_SMTP_URL", "DRAWBRIDGE_MAIL_FROM", "DRAWBRIDGE_WEBHOOK_ALLOW",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP", "DRAWBRIDGE_WEBHOOK_TIMEOUT", "DRAWBRIDGE_WEBHOOK_RETRY",
		"DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX", "DRAWBRIDGE_EGRESS_CIDRS", "SSL_CERT_FILE",
		"DRAWBRIDGE_CURRENCY", "DRAWBRIDGE_BUSINESS_ZONE", "DRAWBRIDGE_BUSINESS_HOLIDAYS",
		"DRAWBRIDGE_BUSINESS_HOURS", "DRAWBRIDGE_FUNDING_CUTOFF",
	} {
		if !strings.Contains(got.Stdout, name) {
			t.Errorf("serve --help does not name %s", name)
		}
	}
	for _, args := range [][]string{
		{"--help"}, {"migrate", "--help"}, {"subscription", "create", "--help"}, {"user", "--help"},
	} {
		if got := w.Run("", args...); got.Status != 0 || got.Stdout == "" {
			t.Errorf("%v ended with %d: %s", args, got.Status, got.Stderr)
		}
	}
}

func TestConcurrentMigrationsAreSafe(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	for range 3 {
		w.Run("", "migrate", "down")
	}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if got := w.Run("", "migrate", "up", "--json"); got.Status != 0 {
				t.Errorf("ended with %d: %s", got.Status, got.Stderr)
			}
		})
	}
	group.Wait()
	var status struct {
		Migrations []struct {
			Applied bool `json:"applied"`
		} `json:"migrations"`
	}
	w.JSON(&status, "migrate", "status")
	for i, step := range status.Migrations {
		if !step.Applied {
			t.Errorf("migration %d is missing", i+1)
		}
	}
}

func TestDemoIsIdempotent(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	first, second := w.DemoData(), w.DemoData()
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
	w := e2etest.New(t)
	partner := w.DemoData().Partners[0].UID.String()
	var made e2etest.Subscription
	w.JSON(&made, "subscription", "create", "--partner", partner, "--url", "https://hook.example/in",
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
	var changed e2etest.Subscription
	w.JSON(&changed, "subscription", "update", "--event", "all", uid, "--no-headers")
	if changed.Secret != nil || len(changed.Headers) != 0 ||
		!cmp.Equal(changed.Events, []string{"all"}) {
		t.Errorf("changed to %+v", changed)
	}
	var rotated e2etest.Subscription
	w.JSON(&rotated, "subscription", "update", uid, "--secret", "brand-new-secret")
	if rotated.Secret == nil || *rotated.Secret != "brand-new-secret" {
		t.Errorf("rotated to %+v", rotated)
	}
	for text, want := range map[string]*int{"25": new(25), "0": nil} {
		var paced e2etest.Subscription
		w.JSON(&paced, "subscription", "update", uid, "--rate", text)
		if !cmp.Equal(paced.Rate, want) {
			t.Errorf("--rate %s made the rate %v", text, paced.Rate)
		}
	}
	w.JSON(new(map[string]any), "subscription", "test", uid)
	for _, step := range []struct{ verb, state string }{
		{"pause", "paused"}, {"pause", "paused"}, {"resume", "active"}, {"delete", "deleted"},
	} {
		var after e2etest.Subscription
		w.JSON(&after, "subscription", step.verb, uid)
		if after.State != step.state {
			t.Errorf("%s left it %s", step.verb, after.State)
		}
	}
	var list struct {
		Subscriptions []e2etest.Subscription `json:"subscriptions"`
	}
	w.JSON(&list, "subscription", "list", "--partner", partner)
	if len(list.Subscriptions) != 0 {
		t.Errorf("a deleted subscription is listed: %+v", list)
	}
	if got := w.Run("", "subscription", "resume", uid); got.Status != 1 {
		t.Errorf("resuming a deleted subscription ended with %d", got.Status)
	}
	want := "create, update, rotate_secret, update, update, test, pause, pause, resume, delete"
	if got := w.Audited(t, "subscription", uid); got != want {
		t.Errorf("the audit log says %s, want %s", got, want)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	made := w.Run("a long enough password\n", "user", "create", "--email", "Ada@Lender.Example",
		"--name", "Ada", "--role", "admin", "--json")
	if made.Status != 0 || !strings.Contains(made.Stdout, `"ada@lender.example"`) {
		t.Fatalf("ended with %d: %s%s", made.Status, made.Stdout, made.Stderr)
	}
	for name, test := range map[string]struct {
		password, email, role string
		names                 string
		status                int
	}{
		"taken": {"a long enough password", "ADA@lender.example", "admin", "email", e2etest.ExitFailed},
		"short": {"short", "b@lender.example", "admin", "password", e2etest.ExitUsage},
		"role":  {"a long enough password", "b@lender.example", "king", "role", e2etest.ExitUsage},
		"mail":  {"a long enough password", "b", "admin", "email", e2etest.ExitUsage},
	} {
		got := w.Run(test.password, "user", "create", "--name", "B",
			"--email", test.email, "--role", test.role)
		if got.Status != test.status || !strings.Contains(got.Stderr, test.names) {
			t.Errorf("%s: ended with %d, want %d: %s", name, got.Status, test.status, got.Stderr)
		}
	}
	for _, address := range [][]string{{"ada@lender.example"}, {"--email", "ada@lender.example"}} {
		got := w.Run("another long password", append([]string{"user", "password"}, address...)...)
		if got.Status != 0 {
			t.Errorf("setting a password of %v ended with %d: %s", address, got.Status, got.Stderr)
		}
	}
	if got := w.Run("", "user", "disable", "ada@lender.example", "--json"); got.Status != 0 ||
		!strings.Contains(got.Stdout, `"disabled": true`) {
		t.Errorf("disabling ended with %d: %s", got.Status, got.Stdout)
	}
}
