package main

import (
	"bytes"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// fullDisk is a standard output on which every write fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

func TestLogWritesLengthsOfTimeForPeople(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	slog.New(jsonLogs(&text)).Info("it waits", "waited", 11*time.Second)
	if !strings.Contains(text.String(), `"waited":"11s"`) {
		t.Errorf("logged %s", text.String())
	}
}

// TestOutputThatIsLostIsAFailure: a secret is shown once, and a script must learn if it was not.
func TestOutputThatIsLostIsAFailure(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	create := []string{"client", "create", "--lender", "--name", "payments", "--scope", "funding"}
	for _, line := range [][]string{
		create, append(create, "--json"),
		{"client", "list"},
		{"version"},
		{"config"},
		{"migrate", "status"},
		{"environment", "show"},
		{"--help"},
		{"client", "create", "--help"},
		{"help", "client"},
		{"completion", "bash"},
	} {
		var stderr lockedBuffer
		status := run(t.Context(), environment{
			args: line, stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &stderr,
			getenv: func(name string) string { return d.variables[name] },
		})
		if status != exitFailed || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%q ended with %d: %s", line, status, stderr.String())
		}
	}
}

// TestOthersGiveTheTerminalNoCommands: text from a server is shown, and cannot clear the screen.
func TestOthersGiveTheTerminalNoCommands(t *testing.T) {
	t.Parallel()
	const command = `\u001b[2J\u009b2K\u0007`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost: // the receiver
		case r.FormValue("after") == "latest":
			_, _ = io.WriteString(w, `{"result": {"data": {"next_cursor": "next`+command+`", "events": [
				{"timestamp": "`+command+`", "body": "{}"}]}}}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"result": {"error": {"message": "not you`+command+`"}}}`)
		}
	}))
	defer server.Close()
	got := (&cli{}).run(t, "listen", "--url", server.URL, "--forward", server.URL,
		"--client-id", "dbc_x", "--client-secret-file", "-")
	for _, output := range []string{got.stdout, got.stderr} {
		if strings.ContainsFunc(strings.ReplaceAll(output, "\n", ""), unicode.IsControl) ||
			!strings.Contains(output, command) {
			t.Errorf("printed %q", output)
		}
	}
	if got.status != exitFailed {
		t.Errorf("ended with %d", got.status)
	}
}

// TestWhatMayBeDoneIsNotCalledFailed: if the connection breaks at the commit or afterwards, a user
// who is told that the command failed makes a second partner, or sends everything twice.
func TestWhatMayBeDoneIsNotCalledFailed(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	partner, _ := d.newPartner(t, 1)
	id := d.document(t, "client", "create", "--partner", partner)["client_id"].(string)
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, step := range []struct {
		trigger, do, want string
		line              []string
	}{
		{
			`CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON partners INITIALLY DEFERRED`,
			`SELECT pg_terminate_backend(pg_backend_pid())`, "it may have taken effect",
			[]string{"partner", "create", "--name", "Twice"},
		},
		{
			`CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON audit_log INITIALLY DEFERRED`,
			`ALTER TABLE clients RENAME TO gone`, "the change was made, but cannot be shown",
			[]string{"client", "rate", id, "--rate", "5", "--burst", "5"},
		},
	} {
		pgtest.Exec(t, db, `CREATE OR REPLACE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN EXECUTE '`+step.do+`'; RETURN NULL; END $$`)
		pgtest.Exec(t, db, step.trigger+` FOR EACH ROW EXECUTE FUNCTION lose()`)
		got := d.run(t, step.line...)
		if got.status != exitFailed || !strings.Contains(got.stderr, step.want) {
			t.Errorf("%q ended with %d: %s", step.line, got.status, got.stderr)
		}
	}
}
