package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestWrongUsageEndsWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
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
		{[]string{"queue", "pause", "deliver"}, 1, "the queues are bulk, default, email, webhook"},
		{[]string{"queue", "resume", "webhook"}, 1, "start a worker first"},
		{[]string{"subscription", "show", unknown}, 1, unknown},
		{[]string{"subscription", "pause", "x"}, 2, "subscription"},
		{[]string{"subscription", "list", "--limit", "501"}, 2, "--limit"},
		{[]string{"delivery", "list", "--limit", "0"}, 2, "--limit"},
		{[]string{"delivery", "list", "--state", "lost"}, 2, "--state"},
		{[]string{"delivery", "list", "--event", "lost"}, 2, "--event"},
		{[]string{"delivery", "list", "--since", "yesterday"}, 2, "--since"},
		{[]string{"delivery", "list", "--since", "0001-01-01"}, 2, "--since"},
		{[]string{"delivery", "list", "--until", "9999-12-31T23:00:00-02:00"}, 2, "--until"},
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

// productArgs are the flags of a valid product with one flag replaced.
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

// What a command that was stopped says must not read like a failure of the database.
func TestStoppedCommandNamesTheSignal(t *testing.T) {
	t.Parallel()
	d, stderr := newCLI(t), lockedBuffer{}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	status := run(stopped, environment{
		args: []string{"migrate", "up"}, stdout: io.Discard, stderr: &stderr,
		getenv: func(name string) string { return d.variables[name] },
	})
	const want = "drawbridge: stopped by a signal: "
	if got := stderr.String(); status != exitFailed || !strings.HasPrefix(got, want) {
		t.Errorf("ended with %d: %s", status, got)
	}
}

// A signal also ends a command that waits for its standard input.
func TestStoppedCommandReadsNoFurther(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, line := range []string{
		"user create --email a@lender.example --name A --role support",
		"subscription compare-secret " + uuid.NewString(),
		"listen --url http://127.0.0.1:1 --client-id x --client-secret-file - " +
			"--forward http://127.0.0.1:1",
	} {
		stdin, typing := io.Pipe()
		late := time.AfterFunc(10*time.Second, func() { _ = typing.Close() })
		var stderr lockedBuffer
		status := run(stopped, environment{
			args: strings.Fields(line), stdin: stdin, stdout: io.Discard, stderr: &stderr,
			getenv: func(string) string { return "" },
		})
		got := stderr.String()
		if !late.Stop() || status != exitFailed ||
			!strings.HasPrefix(got, "drawbridge: stopped by a signal: reading ") {
			t.Errorf("%s ended with %d: %s", line, status, got)
		}
		_ = typing.Close()
	}
}

func TestConfigShowsWhatTheServiceWouldUse(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
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
