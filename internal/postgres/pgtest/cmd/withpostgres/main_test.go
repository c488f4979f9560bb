package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/postgres/pgtest"
)

func TestRun(t *testing.T) {
	t.Setenv(pgtest.Variable, "") // it may be set where the tests run
	output := filepath.Join(t.TempDir(), "output")
	tests := []struct {
		name      string
		arguments []string
		status    int
		problem   string
	}{
		{"success", []string{"sh", "-c", `echo "$` + pgtest.Variable + `" >` + output}, 0, ""},
		{"the command's status", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"a command that dies", []string{"sh", "-c", "kill -9 $$"}, 1, "killed"},
		{"a missing command", []string{"/missing/command"}, 1, "/missing/command"},
		{"no command", nil, 2, "usage"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, err := run(test.arguments)
			if status != test.status {
				t.Errorf("status %d (%v), want %d", status, err, test.status)
			}
			if got := fmt.Sprint(err); err != nil && test.problem == "" ||
				!strings.Contains(got, test.problem) {
				t.Errorf("got %s, want an error with %q", got, test.problem)
			}
		})
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || address.Scheme != "postgres" {
		t.Fatalf("the command was told %q, %v", text, err)
	}
	if connection, err := net.Dial("tcp", address.Host); err == nil {
		_ = connection.Close() // only its existence matters
		t.Error("the server runs on after the command")
	}
}

func TestRunKeepsAServerThatIsNamed(t *testing.T) {
	const named = "postgres://elsewhere/database"
	t.Setenv(pgtest.Variable, named)
	status, err := run([]string{"sh", "-c", `test "$` + pgtest.Variable + `" = ` + named})
	if status != 0 || err != nil {
		t.Errorf("status %d, %v: the command saw another server", status, err)
	}
}
