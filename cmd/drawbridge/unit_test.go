package main

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
)

// TestUnitOfSystemdFits compares the unit with the program; make lint checks it with systemd's
// own tool.
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
	d := &cli{variables: map[string]string{}}
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

// TestSandboxBesideProduction compares the example of a hosted sandbox with the program: the
// settings are complete and cause no warning, and the unit shares nothing with production.
func TestSandboxBesideProduction(t *testing.T) {
	t.Parallel()
	read := func(name string) map[string][]string {
		t.Helper()
		text, err := os.ReadFile("../../docs/deploy/" + name)
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
		return values
	}
	set := sourced(t, "../../docs/deploy/sandbox.environment")
	settings, err := config.Load(func(name string) string {
		// Its files are in docs/deploy here.
		return strings.Replace(set[name], "/etc/drawbridge/", "../../docs/deploy/", 1)
	}, slices.Collect(maps.Keys(set))...)
	if err != nil || settings.Env != config.Sandbox || len(settings.Warnings()) != 0 {
		t.Errorf("the settings are %s: %v, %v", settings.Env, err, settings.Warnings())
	}
	beside, production := read("sandbox.conf"), read("drawbridge.service")
	for _, name := range []string{"EnvironmentFile", "StateDirectory", "WorkingDirectory"} {
		own := beside[name]
		if len(own) == 0 || own[len(own)-1] == production[name][0] ||
			name != "WorkingDirectory" && own[0] != "" { // otherwise systemd adds it to production's
			t.Errorf("%s is %q beside %q", name, own, production[name])
		}
	}
	if !strings.HasPrefix(settings.BlobURL, "file://"+beside["WorkingDirectory"][0]+"/") {
		t.Errorf("it may not write to %s", settings.BlobURL)
	}
}

// sourced reads a file of settings by a shell, as the manual says.
func sourced(t *testing.T, path string) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", `set -ae; . "$0"; env`, path)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	output, err := command.Output()
	if err != nil {
		t.Fatalf("a shell cannot read %s: %v", path, err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasPrefix(name, "DRAWBRIDGE_") || name == "DATABASE_URL" {
			values[name] = value
		}
	}
	return values
}
