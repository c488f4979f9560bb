package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// setting returns the setting of a name.
func setting(t *testing.T, settings []Setting, name string) Setting {
	t.Helper()
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s is missing", name)
	}
	return settings[i]
}

func TestEffectiveNamesSourceAndError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".env")
	lines := "DRAWBRIDGE_LISTEN=127.0.0.1:9000\nDRAWBRIDGE_BASE_PATH=/other\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := from(map[string]string{
		"DRAWBRIDGE_LISTEN": "127.0.0.1:7000", "DRAWBRIDGE_WEBHOOK_TIMEOUT": "soon",
		"DRAWBRIDGE_WEBHOOK_RETRY": "soon",
	})
	getenv, _, err := WithDotEnv(environ, file)
	if err != nil {
		t.Fatal(err)
	}
	got := Effective(environ, getenv)
	if len(got) != len(Variables()) {
		t.Errorf("%d settings for %d variables", len(got), len(Variables()))
	}
	for name, want := range map[string]Setting{
		"DRAWBRIDGE_LISTEN":    {Value: "127.0.0.1:7000", Source: FromEnvironment},
		"DRAWBRIDGE_BASE_PATH": {Value: "/other", Source: FromFile},
		"DRAWBRIDGE_ROLES":     {Value: "api,console,worker", Source: FromDefault},
		"DRAWBRIDGE_WEBHOOK_ALLOW": {
			Value: "127.0.0.0/8,::1/128", Source: FromDefault, // development's own default
		},
	} {
		found := setting(t, got, name)
		if found.Value != want.Value || found.Source != want.Source || found.Error != "" {
			t.Errorf("%s is %+v, want %+v", name, found, want)
		}
	}
	for _, name := range []string{"DRAWBRIDGE_WEBHOOK_TIMEOUT", "DRAWBRIDGE_WEBHOOK_RETRY"} {
		if problem := setting(t, got, name).Error; problem == "" || strings.Contains(problem, name) {
			t.Errorf("%s has the fault %q", name, problem)
		}
	}
}

func TestEffectiveMasksSecrets(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	environ := from(map[string]string{
		"DATABASE_URL":           "postgres://s:" + hidden + "@db.internal:5432/bridge?sslkey=" + hidden,
		"DRAWBRIDGE_SECRETS_KEY": "base64key://" + hidden,
		"DRAWBRIDGE_SMTP_URL":    "smtps://" + hidden + ":" + hidden + "@mail.internal:465",
		"DRAWBRIDGE_BLOB_URL":    "s3://documents?secret_key=" + hidden,
	})
	got := Effective(environ, environ)
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), hidden) {
		t.Errorf("a secret shows: %s, %v", text, err)
	}
	for name, want := range map[string]string{
		"DATABASE_URL":           "postgres://****@db.internal:5432/bridge?****",
		"DRAWBRIDGE_SECRETS_KEY": "****",
		"DRAWBRIDGE_SMTP_URL":    "smtps://****@mail.internal:465",
		"DRAWBRIDGE_BLOB_URL":    "s3://documents?****",
	} {
		if value := setting(t, got, name).Value; value != want {
			t.Errorf("%s shows as %q, want %q", name, value, want)
		}
	}
}

// A password that is not encoded ends the host of its URL, and the rest of it reads as a path or a
// parameter.
func TestNoPartOfAPasswordShows(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"DATABASE_URL": {
			"postgres://svc:p@Secr/etTail@host:5432/bridge", "postgres://svc:12/etTail@host/bridge",
			"postgres://svc:12?etTail@host/bridge", "postgres://svc:12#etTail@host/bridge",
			"postgres://svc:p@h?a=b#etTail@host/bridge", "postgres://a,b/etTail@host/bridge",
		},
		"DRAWBRIDGE_DATABASE_READ_URL": {"postgres://svc:p@Secr/etTail@host:5432/bridge"},
		"DRAWBRIDGE_SMTP_URL": {
			"smtp://u:p@Secr/etTail@host:587", "smtps://u:12?etTail@host", "smtp://u:12#etTail@host",
		},
		"DRAWBRIDGE_OTLP_URL": {"https://u:p@Secr/etTail@host"},
		"DRAWBRIDGE_BLOB_URL": {"s3://k:p@Secr/etTail@documents"},
	} {
		for _, value := range values {
			environ := from(map[string]string{name: value})
			shown := setting(t, Effective(environ, environ), name)
			_, err := Load(environ)
			if shown.Value != "****" || err == nil || !strings.HasPrefix(err.Error(), name+" holds an @") ||
				strings.Contains(err.Error(), "etTail") || strings.Contains(shown.Error, "etTail") {
				t.Errorf("%s=%s shows as %q: %v", name, value, shown.Value, err)
			}
		}
	}
	for name, value := range map[string]string{ // not valid URLs for these
		"DATABASE_URL":           "postgres:/svc:etTail@host/bridge",
		"DRAWBRIDGE_SMTP_URL":    "smtps:/u:etTail@host",
		"DRAWBRIDGE_BLOB_URL":    "s3:/K:etTail@bucket",
		"DRAWBRIDGE_SECRETS_KEY": "base64://etTail",
	} {
		environ := from(map[string]string{name: value})
		if shown := setting(t, Effective(environ, environ), name); shown.Value != "****" {
			t.Errorf("%s=%s shows as %q", name, value, shown.Value)
		}
	}
	for name, value := range map[string]string{
		"DATABASE_URL":        "postgres:///bridge?host=db&user=svc@server&password=p@ss",
		"DRAWBRIDGE_BLOB_URL": "file:///volume1/@appdata/drawbridge",
		"DRAWBRIDGE_OTLP_URL": "http://collector:4318?tenant=a@b",
	} {
		if _, err := Load(from(map[string]string{name: value})); err != nil {
			t.Errorf("values of parameters and folders may hold an @: %v", err)
		}
	}
}

func TestEffectiveReportsProductionsErrors(t *testing.T) {
	t.Parallel()
	environ := from(map[string]string{"DRAWBRIDGE_ENV": "production"})
	got := Effective(environ, environ)
	for _, name := range []string{
		"DATABASE_URL", "DRAWBRIDGE_SECRETS_KEY", "DRAWBRIDGE_PUBLIC_URL",
	} {
		if setting(t, got, name).Error == "" {
			t.Errorf("%s is unfit for production and has no fault", name)
		}
	}
}
