package main

import (
	"strings"
	"testing"
)

func TestHelpIsOneWordAway(t *testing.T) {
	t.Parallel()
	d := &desk{}
	tests := []struct {
		name, line string
		status     int
		want       []string
	}{
		{"bare", "", exitOK, []string{"Webhooks and e-mails\n", "  delivery  ", "  completion  "}},
		{"help", "help", exitOK, []string{"Run the service\n"}},
		{"of a group", "help delivery", exitOK, []string{"  delivery resend  "}},
		{"of a command", "help delivery resend", exitOK, []string{
			"Usage: drawbridge delivery resend", "Examples:", "--state failed --since", "--reason=TEXT",
		}},
		{"of none", "help delivery sell", exitUsage, []string{`no command "delivery sell"`}},
		{"version", "--version", exitOK, []string{version + "\n"}},
		{"wrong flag", "delivery list --bogus", exitUsage, []string{
			"unknown flag --bogus (see drawbridge delivery list --help)",
		}},
		{"no number", "delivery list --limit x", exitUsage, []string{
			`--limit: expected a whole number but got "x"`,
		}},
	}
	for _, test := range tests {
		got := d.run(t, strings.Fields(test.line)...)
		if got.status != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got.status, test.status)
		}
		for _, want := range test.want {
			if !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: no %q in\n%s%s", test.name, want, got.stdout, got.stderr)
			}
		}
	}
}

// An example that is wrong is worse than none.
func TestExamplesAreCommandLines(t *testing.T) {
	t.Parallel()
	parser := newParser(environment{})
	for path, text := range examples {
		if find(parser.Model.Node, strings.Fields(path)) == nil {
			t.Errorf("%q is no command", path)
		}
		for line := range strings.Lines(strings.NewReplacer("'", "", "UID", "u").Replace(text)) {
			_, line, called := strings.Cut(line, "drawbridge ")
			line, _, _ = strings.Cut(line, " > ")
			if !called || strings.ContainsAny(line, "()") {
				continue
			}
			if _, err := parser.Parse(strings.Fields(line)); err != nil &&
				!strings.Contains(err.Error(), "unexpected argument") {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func TestCompletionKnowsTheGrammar(t *testing.T) {
	t.Parallel()
	d := &desk{}
	for line, want := range map[string]string{
		"deli":                    "delivery",
		"delivery ":               "list show resend",
		"delivery re":             "resend",
		"delivery list --st":      "--state",
		"delivery list --state x": "",
		"completion ":             "bash zsh fish",
		"user create --name a --": "--help --email --name --role --must-change --json",
		"se":                      "serve secrets",
	} {
		got := d.run(t, append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		if words := strings.Join(strings.Fields(got.stdout), " "); words != want ||
			got.status != exitOK {
			t.Errorf("after %q: %q, want %q; %s", line, words, want, got.stderr)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := d.run(t, "completion", shell); !strings.Contains(got.stdout, "drawbridge complete --") {
			t.Errorf("%s: %q", shell, got.stdout)
		}
	}
}

func TestEmptyListsSaySo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for list, want := range map[string]string{
		"delivery": "No deliveries.\n", "bulk": "No bulk resends.\n", "partner": "No partners.\n",
	} {
		if got := d.run(t, list, "list"); got.stdout != "" || got.stderr != want {
			t.Errorf("%s: %q and %q", list, got.stdout, got.stderr)
		}
	}
}
