package config

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drawbridge/internal/calendar"
)

// from returns a lookup in a map.
func from(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	got, err := Load(from(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		ReadLag:            10 * time.Second,
		PreparedStatements: true,
		DatabaseTimeout:    10 * time.Second,

		Env:      Development,
		Listen:   "127.0.0.1:8080",
		BasePath: "/api",
		Roles:    []Role{RoleAPI, RoleConsole, RoleWorker},
		MailFrom: "Drawbridge <no-reply@localhost>",
		OIDC:     OIDC{Name: "single sign-on"},
		WebhookAllow: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
		},
		WebhookAllowHTTP:     true,
		WebhookTimeout:       30 * time.Second,
		WebhookRetry:         []time.Duration{time.Minute, 10 * time.Minute},
		WebhookRetryAfterMax: time.Hour,
		TraceRatio:           1,
		TLSAutocertDirectory: "https://acme-v02.api.letsencrypt.org/directory",
		Currency:             "USD",
		BusinessZone:         zone(t, "America/New_York"),
		BusinessHours:        calendar.Hours{Opens: 9 * 60, Closes: 17 * 60},
		FundingCutoff:        15 * 60,
	}
	sameZone := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}), sameZone); diff != "" {
		t.Error(diff)
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestLoadCurrency(t *testing.T) {
	t.Parallel()
	got, err := Load(from(map[string]string{"DRAWBRIDGE_CURRENCY": "EUR"}))
	if err != nil || got.Currency != "EUR" {
		t.Errorf("EUR became %q, %v", got.Currency, err)
	}
	for value, want := range map[string]string{
		"EURO": `is "EURO"; it must be a code of ISO 4217 such as USD`,
		"eur":  `is "eur"; it must be a code`,
		"ZZZ":  `is "ZZZ"; it must be a code`,
		"XXX":  `is "XXX"; it must be a code`,
		"JPY":  `is "JPY", whose amounts have no hundredths`,
	} {
		_, err := Load(from(map[string]string{"DRAWBRIDGE_CURRENCY": value}))
		if err == nil || !strings.HasPrefix(err.Error(), "DRAWBRIDGE_CURRENCY "+want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Ordinary HTTP clients remove dots from a path before they request it.
func TestLoadBasePath(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"/": "", "/api/": "/api", "/a/b": "/a/b", "/.well-known": "/.well-known", "/a..b": "/a..b",
	} {
		got, err := Load(from(map[string]string{"DRAWBRIDGE_BASE_PATH": value}))
		if err != nil || got.BasePath != want {
			t.Errorf("%s became %q, %v", value, got.BasePath, err)
		}
	}
	for _, value := range []string{
		"api", "/.", "/..", "/../", "/api/..", "/./api", "/api/../v", "//api", "/a//b", "/a?b", "/a%2e",
		"/docs/x",
	} {
		_, err := Load(from(map[string]string{"DRAWBRIDGE_BASE_PATH": value}))
		if err == nil || !strings.HasPrefix(err.Error(), "DRAWBRIDGE_BASE_PATH is ") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// The error does not quote the value: it may hold a password.
func TestLoadPublicURL(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"http://a.example:1/": "http://a.example:1", "https://[::1]:65535": "https://[::1]:65535",
	} {
		got, err := Load(from(map[string]string{"DRAWBRIDGE_PUBLIC_URL": value}))
		if err != nil || got.PublicURL != want {
			t.Errorf("%s became %q, %v", value, got.PublicURL, err)
		}
	}
	const password = "open-sesame"
	for _, value := range []string{
		"https://a.example:0", "https://a.example:99999", "https://:8080", "a.example",
		"https://ana:" + password + "@a.example", "https://ana:" + password + "/@a.example",
		"https://a.example/" + password, "ftp://ana:" + password + "@a.example",
	} {
		getenv := from(map[string]string{"DRAWBRIDGE_PUBLIC_URL": value})
		_, err := Load(getenv)
		shown := setting(t, Effective(getenv, getenv), "DRAWBRIDGE_PUBLIC_URL")
		if err == nil || !strings.HasPrefix(err.Error(), "DRAWBRIDGE_PUBLIC_URL ") ||
			strings.Contains(err.Error(), password) || strings.Contains(value, "@") &&
			strings.Contains(shown.Value, password) {
			t.Errorf("%s: %v, shown as %q", value, err, shown.Value)
		}
	}
}

func TestLoadCalendar(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "holidays")
	if err := os.WriteFile(file, []byte("2026-12-25 # Christmas\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{
		"DRAWBRIDGE_BUSINESS_ZONE": "America/Chicago", "DRAWBRIDGE_BUSINESS_HOLIDAYS": file,
		"DRAWBRIDGE_BUSINESS_HOURS": "08:00-18:30", "DRAWBRIDGE_FUNDING_CUTOFF": "18:30",
	}
	got, err := Load(from(good))
	if err != nil {
		t.Fatal(err)
	}
	days := got.Calendar()
	christmas := time.Date(2026, 12, 25, 12, 0, 0, 0, time.UTC)
	want := time.Date(2026, 12, 29, 0, 30, 0, 0, time.UTC) // half past six on Monday, in Chicago
	if cutoff := days.NextCutoff(christmas); !cutoff.Equal(want) {
		t.Errorf("the cut-off after Christmas is %s", cutoff)
	}
	if err := os.WriteFile(file+".wrong", []byte("\n25.12.2026\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string][2]string{
		"DRAWBRIDGE_BUSINESS_ZONE":     {"Local", `is "Local"; it must be a zone such as`},
		"DRAWBRIDGE_BUSINESS_HOURS":    {"17:00-9:00", `is wrong: "9:00" is no time of day`},
		"DRAWBRIDGE_FUNDING_CUTOFF":    {"19:00", "is 19:00; it must lie within"},
		"DRAWBRIDGE_BUSINESS_HOLIDAYS": {file + ".wrong", "names " + file + `.wrong: line 2: "25.12.`},
	} {
		values := maps.Clone(good)
		values[name] = wrong[0]
		_, err := Load(from(values))
		if all, ok := errors.AsType[Errors](err); !ok || len(all) != 1 ||
			!strings.HasPrefix(err.Error(), name+" "+wrong[1]) {
			t.Errorf("%s=%q: %v", name, wrong[0], err)
		}
	}
	good["DRAWBRIDGE_BUSINESS_HOLIDAYS"] = file + ".none"
	if _, err := Load(from(good)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Without trust roots, each delivery to an endpoint that needs them would fail.
func TestLoadRefusesTrustRootsThatHoldNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "roots")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		file + ".none":     "names a file that cannot be read",
		filepath.Dir(file): "names a file that cannot be read",
		file:               "names " + file + ", which holds no certificate",
	} {
		_, err := Load(from(map[string]string{"SSL_CERT_FILE": value}))
		if err == nil || !strings.HasPrefix(err.Error(), "SSL_CERT_FILE "+want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestLoadProduction(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"DRAWBRIDGE_ENV":         "production",
		"DATABASE_URL":           "postgres://u:p@db.internal/drawbridge",
		"DRAWBRIDGE_PUBLIC_URL":  "https://drawbridge.example/",
		"DRAWBRIDGE_SECRETS_KEY": "base64key://AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"DRAWBRIDGE_BLOB_URL":    "s3://documents",
		"DRAWBRIDGE_SMTP_URL":    "smtp://mail.internal",
		"DRAWBRIDGE_MAIL_FROM":   "Lender <mail@lender.example>",
		"DRAWBRIDGE_BASE_PATH":   "/",
		"DRAWBRIDGE_ROLES":       "worker, api,worker",

		"DRAWBRIDGE_OIDC_ISSUER":    "https://issuer.example",
		"DRAWBRIDGE_OIDC_CLIENT_ID": "console",

		"DRAWBRIDGE_TRUSTED_PROXIES": "10.0.0.0/8",
	}
	got, err := Load(from(good))
	if err != nil {
		t.Fatal(err)
	}
	if got.PublicURL != "https://drawbridge.example" || got.BasePath != "" ||
		got.WebhookAllowHTTP || got.WebhookAllow != nil ||
		!got.Has(RoleAPI) || !got.Has(RoleWorker) || got.Has(RoleConsole) || len(got.Roles) != 2 {
		t.Errorf("loaded %+v", got)
	}
	for name, wrong := range map[string]string{
		"DATABASE_URL":              "",
		"DRAWBRIDGE_PUBLIC_URL":     "http://drawbridge.example",
		"DRAWBRIDGE_SECRETS_KEY":    "",
		"DRAWBRIDGE_OIDC_CLIENT_ID": "",
		"DRAWBRIDGE_OIDC_ISSUER":    "http://issuer.example",
		"DRAWBRIDGE_OIDC_DOMAINS":   "lender.example,a@b",
	} {
		values := maps.Clone(good)
		values[name] = wrong
		_, err := Load(from(values))
		errs, ok := errors.AsType[Errors](err)
		if !ok || len(errs) != 1 || !strings.HasPrefix(errs[0], name) {
			t.Errorf("%s=%q: %v", name, wrong, err)
		}
	}
	sandbox := maps.Clone(good)
	sandbox["DRAWBRIDGE_ENV"], sandbox["DRAWBRIDGE_PUBLIC_URL"] = "sandbox", "http://box.example"
	if _, err := Load(from(sandbox)); err == nil ||
		!strings.Contains(err.Error(), "DRAWBRIDGE_PUBLIC_URL must be an https:// origin in sandbox") {
		t.Errorf("a sandbox on http: %v", err)
	}
	if len(got.Warnings()) != 0 {
		t.Errorf("warned of good settings: %v", got.Warnings())
	}
	for name, doubtful := range map[string]string{
		"DRAWBRIDGE_BLOB_URL":           "",
		"DRAWBRIDGE_SMTP_URL":           "",
		"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP": "true",
		"DRAWBRIDGE_TRUSTED_PROXIES":    "",
	} {
		values := maps.Clone(good)
		values[name] = doubtful
		got, err := Load(from(values))
		if err != nil || len(got.Warnings()) != 1 || !strings.HasPrefix(got.Warnings()[0], name) {
			t.Errorf("%s=%q: %v, warnings %v", name, doubtful, err, got.Warnings())
		}
	}
}

// Behind a proxy that is not configured, all clients have one address; a process that serves https
// itself has no proxy in front.
func TestAProxyThatIsNotNamedIsDoubtful(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values map[string]string
		doubts int
	}{
		"http":             {map[string]string{"DRAWBRIDGE_PUBLIC_URL": "http://a.example"}, 0},
		"no URL":           {nil, 0},
		"an unnamed proxy": {map[string]string{"DRAWBRIDGE_PUBLIC_URL": "https://a.example"}, 1},
		"https of our own": {map[string]string{
			"DRAWBRIDGE_PUBLIC_URL": "https://a.example", "DRAWBRIDGE_TLS_AUTOCERT": "a.example",
		}, 0},
	} {
		got, err := Load(from(test.values))
		if err != nil || len(got.Warnings()) != test.doubts {
			t.Errorf("%s: %v, warnings %v", name, err, got.Warnings())
		}
	}
}

// TestLoadRefusesALocalSenderInProduction: a mail server would refuse every mail.
func TestLoadRefusesALocalSenderInProduction(t *testing.T) {
	t.Parallel()
	for sender, refused := range map[string]bool{
		"": true, "Lender <no-reply@LOCALHOST>": true, "a@mail.localhost": true,
		"a@localhost.localdomain": true, "Lender <mail@lender.example>": false,
		"localhost@lender.example": false,
	} {
		for _, server := range []string{"", "smtp://mail.internal"} {
			values := map[string]string{
				"DRAWBRIDGE_ENV":         "production",
				"DATABASE_URL":           "postgres://db/x",
				"DRAWBRIDGE_PUBLIC_URL":  "https://drawbridge.example",
				"DRAWBRIDGE_SECRETS_KEY": "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
				"DRAWBRIDGE_MAIL_FROM":   sender, "DRAWBRIDGE_SMTP_URL": server,
			}
			_, err := Load(from(values))
			if (err != nil) != (refused && server != "") ||
				err != nil && !strings.HasPrefix(err.Error(), "DRAWBRIDGE_MAIL_FROM is ") {
				t.Errorf("sender %q, server %q: %v", sender, server, err)
			}
			values["DRAWBRIDGE_ENV"] = "development"
			if _, err := Load(from(values)); err != nil {
				t.Errorf("development, sender %q, server %q: %v", sender, server, err)
			}
		}
	}
}

func TestLoadNamesEveryErrorAtOnceAndNoPassword(t *testing.T) {
	t.Parallel()
	_, err := Load(from(map[string]string{
		"DATABASE_URL":               "mysql://root:hunter2@db/x",
		"DRAWBRIDGE_SMTP_URL":        "http://me:hunter2@mail",
		"DRAWBRIDGE_BLOB_URL":        "ftp://me:hunter2@files",
		"DRAWBRIDGE_WEBHOOK_TIMEOUT": "soon",
		"DRAWBRIDGE_LISTEN":          "nowhere",
	}))
	errs, ok := errors.AsType[Errors](err)
	if !ok || len(errs) != 5 {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error shows a password or more than a line: %v", err)
	}
}

// A misspelt setting would silently have no effect.
func TestLoadRefusesNamesThatAreNoSettings(t *testing.T) {
	t.Parallel()
	_, err := Load(from(map[string]string{"DRAWBRIDGE_PORT": "8080"}), "HOME", "DRAWBRIDGE_LISTN",
		"DRAWBRIDGE_TEST_DATABASE_URL", "DRAWBRIDGE_ENV", "DRAWBRIDGE_FLUX_CAPACITOR",
		"DRAWBRIDGE_PORT", "DRAWBRIDGE_SERVICE_NAME")
	want := Errors{
		"DRAWBRIDGE_LISTN is no setting; did you mean DRAWBRIDGE_LISTEN?",
		"DRAWBRIDGE_FLUX_CAPACITOR is no setting; drawbridge serve --help lists them",
		"DRAWBRIDGE_PORT is no setting; drawbridge serve --help lists them",
		"DRAWBRIDGE_SERVICE_NAME is no setting; drawbridge serve --help lists them",
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Error(diff)
	}
	// The variables that Kubernetes sets in each container for a Service named drawbridge.
	service := from(map[string]string{"DRAWBRIDGE_PORT": "tcp://10.96.0.7:80"})
	if _, err := Load(service, "DRAWBRIDGE_SERVICE_HOST", "DRAWBRIDGE_SERVICE_PORT",
		"DRAWBRIDGE_SERVICE_PORT_HTTP", "DRAWBRIDGE_PORT", "DRAWBRIDGE_PORT_80_TCP",
		"DRAWBRIDGE_PORT_80_TCP_PROTO", "DRAWBRIDGE_PORT_80_TCP_PORT",
		"DRAWBRIDGE_PORT_80_TCP_ADDR"); err != nil {
		t.Errorf("beside a Service: %v", err)
	}
}

func TestLoadReadsSeveralDatabaseHosts(t *testing.T) {
	t.Parallel()
	const wanted = "connect_timeout=3&host=a%2Cb&port=5432%2C6000&target_session_attrs=read-write"
	for value, want := range map[string]string{
		"postgres://u:p@db:5432/x?sslmode=require": "postgres://u:p@db:5432/x?sslmode=require",
		"postgres://u:p%40@a,b:6000/x":             "postgres://u:p%40@/x?" + wanted,
		"postgres://u@/x?host=a,b&port=5432,6000":  "postgres://u@/x?" + wanted,
		"postgresql://a:5432,[::1]:6/x?connect_timeout=9": "postgresql:///x?connect_timeout=9&" +
			"host=a%2C%3A%3A1&port=5432%2C6&target_session_attrs=read-write",
		"postgres:///x?host=/run/postgresql": "postgres:///x?host=/run/postgresql",
		"postgres://a,b/x?target_session_attrs=any": "postgres:///x?connect_timeout=3&" +
			"host=a%2Cb&port=5432%2C5432&target_session_attrs=any",
		"postgres://u:hunter2@a,/x":         "",
		"postgres://u:hunter2@a:b,c/x":      "",
		"postgres://u:hunter2@a,b/x?host=c": "",
		"postgres:///x":                     "",
		"mysql://a,b/x":                     "",
	} {
		got, err := Load(from(map[string]string{"DATABASE_URL": value}))
		if got.DatabaseURL != want || (err == nil) != (want != "") ||
			err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s became %s, %v", value, got.DatabaseURL, err)
		}
	}
}

func TestLoadReadsOneReplica(t *testing.T) {
	t.Parallel()
	for value, right := range map[string]bool{
		"postgres://u:p@db:5432/x":                  true,
		"postgres:///x?host=/run/postgresql":        true,
		"postgres://u:hunter2@a,b/x":                false,
		"postgres:///x?host=a,b&password=y":         false,
		"mysql://u:hunter2@db/x":                    false,
		"postgres://a,b/x?target_session_attrs=any": false,
	} {
		got, err := Load(from(map[string]string{"DRAWBRIDGE_DATABASE_READ_URL": value}))
		if (err == nil) != right || right && got.ReadURL != value || err != nil &&
			(strings.Contains(err.Error(), "hunter2") ||
				!strings.Contains(err.Error(), "DRAWBRIDGE_DATABASE_READ_URL")) {
			t.Errorf("%s became %s, %v", value, got.ReadURL, err)
		}
	}
}

// TestLoadNamesTheDatabaseURLThatTheDriverRefuses has parameters that only the driver checks.
func TestLoadNamesTheDatabaseURLThatTheDriverRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DATABASE_URL", "DRAWBRIDGE_DATABASE_READ_URL"} {
		for parameter, wrong := range map[string]string{
			"sslmode": "requires", "connect_timeout": "soon", "target_session_attrs": "any-one",
		} {
			_, err := Load(from(map[string]string{
				name: "postgres://u:hunter2@db/x?" + parameter + "=" + wrong,
			}))
			if err == nil || !strings.HasPrefix(err.Error(), name+" ") ||
				!strings.Contains(err.Error(), parameter) ||
				strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s with %s=%s: %v", name, parameter, wrong, err)
			}
		}
	}
}

func TestDotEnv(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".env")
	text := "# a comment\n\nA=1\nexport B = \"two words\" # said so\nC='x=y'\nD=\n" +
		"F=1 # a comment\nG=a#b\t# another\nH=\"# no comment\"\nI= # nothing\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lookup, _, err := WithDotEnv(from(map[string]string{"A": "environment"}), path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"A": "environment", "B": "two words", "C": "x=y", "D": "", "E": "",
		"F": "1", "G": "a#b", "H": "# no comment", "I": "",
	} {
		if got := lookup(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, _, err := WithDotEnv(from(nil), path+".missing"); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("A=1\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = WithDotEnv(from(nil), path)
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a malformed line: %v", err)
	}
}

func FuzzDotEnv(f *testing.F) {
	for _, seed := range []string{"A=1", "export A='x'", "#", "=", "A=\"", "\x00=\xff", "A=1\r\nB=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseDotEnv(text)
		if err == nil {
			for name := range values {
				if name == "" || strings.ContainsAny(name, " \t\n") {
					t.Errorf("read the name %q", name)
				}
			}
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("DRAWBRIDGE_WEBHOOK_ALLOW", "10.0.0.0/8")
	f.Add("DRAWBRIDGE_LISTEN", "[::1]:0")
	f.Add("DATABASE_URL", "postgres://h/d")
	f.Add("DRAWBRIDGE_MAIL_FROM", "A <a@b>")
	f.Fuzz(func(t *testing.T, name, value string) {
		_, err := Load(from(map[string]string{name: value}))
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%q: the error does not name the variable: %v", name, value, err)
		}
	})
}
