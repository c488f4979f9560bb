package service

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// onTerminal runs a command on a pseudo-terminal and returns what is displayed there.
func onTerminal(w *e2etest.Harness, args ...string) string {
	w.T.Helper()
	command := w.Command(args...)
	terminal := exec.Command("script", "--quiet", "--flush", "--command",
		"'"+strings.Join(command.Args, "' '")+"'", "/dev/null")
	terminal.Dir, terminal.Env = command.Dir, slices.Concat(command.Env, []string{"SHELL=/bin/sh"})
	seen, err := terminal.CombinedOutput()
	if err != nil {
		w.T.Fatalf("%v: %v: %s", args, err, seen)
	}
	return strings.ReplaceAll(string(seen), "\r\n", "\n")
}

// TestTerminalsHaveHeadsAndColours: output to a terminal has heads over columns, and colours unless
// they are turned off; output to a pipe has only the lines.
func TestTerminalsHaveHeadsAndColours(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["TERM"] = "xterm-256color"
	w.DemoData()
	const escape = "\x1b["
	plain := func(text string) string {
		for _, colour := range []string{"0", "1", "2", "31", "32", "33"} {
			text = strings.ReplaceAll(text, escape+colour+"m", "")
		}
		return text
	}
	piped := w.Run("", "partner", "list").Stdout
	if piped == "" || strings.Contains(piped, escape) || strings.Contains(piped, "NAME") {
		t.Errorf("a pipe gets %q", piped)
	}
	coloured := onTerminal(w, "partner", "list")
	head, rows, _ := strings.Cut(coloured, "\n")
	if !strings.HasPrefix(head, escape+"1m") || !strings.Contains(head, "NAME") {
		t.Errorf("a terminal has the head %q", head)
	}
	if column := strings.Index(plain(head), "NAME"); rows == "" || column < 0 ||
		strings.Contains(rows, escape) || strings.TrimSpace(rows[column-1:column]) != "" {
		t.Errorf("under %q a terminal has %q", head, rows)
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		without := *w
		without.Env = maps.Clone(w.Env)
		without.Env[name] = value
		if got := onTerminal(&without, "partner", "list"); got != plain(coloured) {
			t.Errorf("with %s=%s a terminal has %q, want %q", name, value, got, plain(coloured))
		}
		if got := onTerminal(&without, "no-such-command"); got == "" || strings.Contains(got, escape) {
			t.Errorf("with %s=%s a terminal is told %q", name, value, got)
		}
	}
	if got := onTerminal(w, "no-such-command"); !strings.HasPrefix(got, escape+"31mdrawbridge:") {
		t.Errorf("a wrong command is told as %q", got)
	}
	if got := onTerminal(w, "doctor"); !strings.Contains(got, escape+"32mok      "+escape+"0m ") {
		t.Errorf("the doctor writes %q", got)
	}
	if got := w.Run("", "doctor").Stdout; strings.Contains(got, escape) {
		t.Errorf("a pipe gets of the doctor %q", got)
	}
}
