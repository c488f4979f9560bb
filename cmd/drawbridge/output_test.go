package main

import (
	"errors"
	"strings"
	"testing"
)

// fullDisk is a standard output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestOutputThatIsLostIsAFailure: a secret is shown once, and a script has to hear that it was not.
func TestOutputThatIsLostIsAFailure(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	create := []string{"client", "create", "--lender", "--name", "payments", "--scope", "funding"}
	for _, line := range [][]string{
		create, append(create, "--json"),
		{"client", "list"},
		{"version"},
		{"config"},
		{"migrate", "status"},
		{"environment", "show"},
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
