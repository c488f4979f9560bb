package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestHelpIsOneWordAway(t *testing.T) {
	t.Parallel()
	d := &cli{}
	tests := []struct {
		name, line string
		status     int
		want       []string
	}{
		{"bare", "", exitOK, []string{"Webhooks and e-mails\n", "  delivery  ", "  completion  "}},
		{"help", "help", exitOK, []string{"Run the service\n"}},
		{"of a group", "help delivery", exitOK, []string{
			"\nCommands:\n  delivery list  ", "  delivery resend  ",
		}},
		{"of a command", "help delivery resend", exitOK, []string{
			"Usage: drawbridge delivery resend", "Examples:", "--state failed --since", "--reason=TEXT",
		}},
		{"of none", "help delivery sell", exitUsage, []string{`no command "delivery sell"`}},
		{"version", "--version", exitOK, []string{version + "\n"}},
		{"version for programs", "version --json", exitOK, []string{`"version": "` + version + `"`}},
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
	if got := d.run(t, "migrate", "--help").stdout; strings.Count(got, "\n  migrate up ") != 1 {
		t.Errorf("a command is not listed once:\n%s", got)
	}
}

// Commands that messages tell people to run must exist.
func TestMessagesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	root := newParser(environment{}).Model.Node
	named := regexp.MustCompile(`\bdrawbridge ([a-z]+) ([a-z][a-z-]*)`)
	seen := 0
	for _, folder := range []string{
		".", "../../internal", "../../jobs", "../../web", "../../views", "../../migrations",
	} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range named.FindAllStringSubmatch(string(text), -1) {
				group := find(root, found[1:2])
				if group == nil || len(group.Children) == 0 {
					continue
				}
				seen++
				if find(group, found[2:3]) == nil {
					t.Errorf("%s names %q, which is no command", path, found[0])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands were found", seen)
	}
}

// A wrong example is worse than none.
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
	d := &cli{}
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
	d := newCLI(t)
	for list, want := range map[string]string{
		"delivery": "No deliveries.\n", "bulk": "No bulk resends.\n", "partner": "No partners.\n",
	} {
		if got := d.run(t, list, "list"); got.stdout != "" || got.stderr != want {
			t.Errorf("%s: %q and %q", list, got.stdout, got.stderr)
		}
	}
}

// TestEveryCommandPrintsJSON walks the grammar: programs can read the output of every command that
// prints results of its own.
func TestEveryCommandPrintsJSON(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"serve":      "runs until it is stopped, and logs",
		"listen":     "prints what arrives while it runs",
		"help":       "is for people",
		"completion": "prints a script for a shell",
	}
	var found []string
	for _, leaf := range newParser(environment{}).Model.Leaves(true) {
		path := strings.TrimPrefix(leaf.FullPath(), "drawbridge ")
		path, _, _ = strings.Cut(path, " <")
		has := slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "json" })
		if _, excepted := without[path]; has == excepted {
			found = append(found, path)
		}
	}
	if len(found) > 0 {
		t.Errorf("these have no --json, or have it and are named as exceptions: %q", found)
	}
}

// TestWrongValuesAreNamedInPlainWords gives flags of every type values that they cannot hold: the
// message says which value is expected, without Go's terms.
func TestWrongValuesAreNamedInPlainWords(t *testing.T) {
	t.Parallel()
	d := &cli{}
	seen := make(map[string]bool)
	for _, leaf := range newParser(environment{}).Model.Leaves(true) {
		path := strings.TrimPrefix(leaf.FullPath(), "drawbridge ")
		path, _, _ = strings.Cut(path, " <")
		for _, flag := range leaf.Flags {
			kind := flag.Target.Type().String()
			if flag.Target.Kind() == reflect.String || strings.HasSuffix(kind, "string") || seen[kind] {
				continue
			}
			seen[kind] = true
			got := d.run(t, append(strings.Fields(path), "--"+flag.Name+"=x?y")...)
			if got.status != exitUsage || !strings.Contains(got.stderr, "--"+flag.Name) {
				t.Errorf("%s --%s: status %d, %s", path, flag.Name, got.status, got.stderr)
			}
			for _, word := range []string{"strconv", "parsing", "nil", "int ", "int64", "uuid.", "time:"} {
				if strings.Contains(got.stderr, word) {
					t.Errorf("%s --%s (%s) speaks of %q: %s", path, flag.Name, kind, word, got.stderr)
				}
			}
		}
	}
}

// Text that help tells people to type can be typed: Go's comment printer turns two single quotes
// into a character that no keyboard has.
func TestHelpNamesWhatCanBeTyped(t *testing.T) {
	t.Parallel()
	d := &cli{}
	for _, test := range []struct{ command, want string }{
		{"partner update", `"" for none`},
		{"subscription create", `"" for none`},
		{"subscription update", `"" for none`},
	} {
		got := strings.Join(strings.Fields(d.run(t, strings.Fields("help "+test.command)...).stdout), " ")
		if !strings.Contains(got, test.want) {
			t.Errorf("help %s lacks %s", test.command, test.want)
		}
	}
	for path, text := range helpTexts(newParser(environment{}).Model.Node, "") {
		if strings.Contains(text, "''") || strings.ContainsAny(text, "“”‘’") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// helpTexts are the help texts of a command, its flags and all its subcommands, by path.
func helpTexts(node *kong.Node, path string) map[string]string {
	found := map[string]string{path: node.Help}
	for _, flag := range node.Flags {
		found[path+" --"+flag.Name] = flag.Help
	}
	for _, child := range node.Children {
		maps.Copy(found, helpTexts(child, strings.TrimSpace(path+" "+child.Name)))
	}
	return found
}
