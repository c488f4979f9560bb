package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/app"
)

// TestUnitOfSystemdFits holds the unit against the program; make lint has
// systemd's own tool look at it.
func TestUnitOfSystemdFits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/deploy/drawbridge.service")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(line, "#") {
			values[name] = append(values[name], value)
		}
	}
	command := strings.TrimPrefix(
		strings.Join(values["ExecStart"], ""), "/usr/local/bin/drawbridge ")
	d := &desk{variables: map[string]string{}}
	got := d.run(t, append(strings.Fields(command), "--help")...)
	if command == "" || got.status != 0 {
		t.Errorf("it starts %v, which is no command", values["ExecStart"])
	}
	patience, err := time.ParseDuration(strings.Join(values["TimeoutStopSec"], ""))
	if err != nil || patience < app.DrainTimeout+5*time.Second {
		t.Errorf("it is killed after %s (%v), and may need %s to end", patience, err, app.DrainTimeout)
	}
	for name, want := range map[string]string{
		"KillSignal": "SIGTERM", "DynamicUser": "yes", "NoNewPrivileges": "yes",
		"ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes",
	} {
		if !slices.Equal(values[name], []string{want}) {
			t.Errorf("%s is %v, want %s", name, values[name], want)
		}
	}
}
