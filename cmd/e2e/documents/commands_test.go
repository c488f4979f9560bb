package documents

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// documents are the pages whose commands are checked.
var documents = []string{
	"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/OPERATIONS.md", "docs/ARCHITECTURE.md",
	"docs/THREAT_MODEL.md", "docs/PERFORMANCE.md", "docs/ASVS.md", "docs/RELIABILITY.md",
	"docs/SCALING.md", "CHANGELOG.md",
}

var (
	fenced = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// commanded matches command lines of the program, in inline code, in a code block, or
	// at the end of a sentence of the console.
	commanded = regexp.MustCompile(
		"(?m)(?:`|^|\" |with: )(?:[A-Z_]+=\\S+ )*drawbridge ([a-z][^`\n]*?)(?:\",)?(?:`|$)")
	// shortened matches command lines without the program's name.
	shortened = regexp.MustCompile("`((?:[a-z]+ )+--[a-z][^`\n]*)`")
	worded    = regexp.MustCompile(`^[a-z][a-z-]*$`)
	flagged   = regexp.MustCompile(`--[a-z][a-z-]*`)
)

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentedCommandsExist reads the help of every command that a document names,
// and looks for its flags there. It refuses commands without the program's name, since
// no test would find them.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	w := e2etest.NewWithoutDatabase(t, nil)
	seen := 0
	for _, name := range documents {
		text := readDocument(t, name)
		for _, found := range commanded.FindAllStringSubmatch(text, -1) {
			seen++
			checkCommand(t, w, name, found[1])
		}
		for _, found := range shortened.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(found[1], "drawbridge ") {
				t.Errorf("%s names `%s` and not of which program", name, found[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands were found", seen)
	}
}

// TestReadmeNamesEveryCommand compares the table of commands with what the program has.
func TestReadmeNamesEveryCommand(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for line := range strings.Lines(readDocument(t, "README.md")) {
		if strings.HasPrefix(line, "| `drawbridge ") {
			table.WriteString(line)
		}
	}
	help := e2etest.NewWithoutDatabase(t, nil).Run("", "--help").Stdout
	commands := regexp.MustCompile(`(?m)^ {2}([a-z]+) `).FindAllStringSubmatch(help, -1)
	if len(commands) < 25 {
		t.Errorf("only %d commands were found in:\n%s", len(commands), help)
	}
	for _, command := range commands {
		if !regexp.MustCompile("`(drawbridge )?" + command[1] + "\\b").MatchString(table.String()) {
			t.Errorf("the README does not name drawbridge %s", command[1])
		}
	}
}

func checkCommand(t *testing.T, w *e2etest.Harness, name, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, "|") // the first of several alternatives
	words := strings.Fields(line)
	other := func(word string) bool { return !worded.MatchString(word) }
	if end := slices.IndexFunc(words, other); end >= 0 {
		words = words[:end]
	}
	got := w.Run("", append(slices.Clone(words), "--help")...)
	path := "drawbridge " + strings.Join(words, " ")
	if got.Status != 0 || !strings.Contains(got.Stdout, "Usage: "+path) {
		t.Errorf("%s names `%s`, which is no command", name, path)
	}
	for _, flag := range flagged.FindAllString(line, -1) {
		if !strings.Contains(got.Stdout, flag) {
			t.Errorf("%s names `%s %s`, and there is no such flag", name, path, flag)
		}
	}
}

// unrun are commands of blocks that no test can run unchanged, and why.
var unrun = map[string]string{
	"drawbridge_owner": "roles belong to the whole server; TestServiceOwnsNothing has its own names",
	"migrate up":       "the same",
	"roles.sql":        "the same",
	"RESTORED_ADMIN":   "the same",
	"systemd-run":      "it wants a machine that systemd runs",
	"docker exec":      "it wants an engine",
	"/etc/drawbridge":  "the settings of a machine; TestSandboxBesideProduction reads the example",
	"retention run":    "the same",
	"archive_mode":     "a server of its own has it in TestPointInTimeRecovery",
	"archive_command":  "the same",
	"pg_basebackup":    "the same",
}

// TestOperationsManualRuns executes the blocks of the manual in their order.
func TestOperationsManualRuns(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.DemoData()
	w.Serve("--roles", "api").Stop() // a process must have started on the database once
	restored := *w
	restored.Env = map[string]string{
		"DATABASE_URL": pgtest.URL(t), "DRAWBRIDGE_LISTEN": "127.0.0.1:0",
		"DRAWBRIDGE_SECRETS_KEY": w.Env["DRAWBRIDGE_SECRETS_KEY"],
	}
	restored.Execute(restored.Open(t), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	ran := 0
	for _, block := range fenced.FindAllStringSubmatch(readDocument(t, "docs/OPERATIONS.md"), -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "drawbridge backup record") {
				t.Error("a backup is recorded whether or not the line before it made one")
			}
			if why := whyUnrun(line); why != "" {
				continue
			}
			ran++
			if strings.Contains(line, "restore show") {
				restored.Serve().WaitForLog("nothing is sent")
			}
			command := exec.CommandContext(t.Context(), "bash", "-c", line)
			command.Dir = w.Folder
			command.Env = slices.Concat(w.Command().Env, []string{
				"RESTORED_URL=" + restored.Env["DATABASE_URL"],
				"PATH=" + programsFolder(t) + ":/usr/lib/postgresql/bin:" + os.Getenv("PATH"),
			})
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s ended with %v: %s", line, err, output)
			}
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands ran", ran)
	}
}

func whyUnrun(line string) string {
	for part, why := range unrun {
		if strings.Contains(line, part) {
			return why
		}
	}
	return ""
}

// programsFolder is a folder with the program under its own name.
func programsFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(e2etest.Binary, folder+"/drawbridge"); err != nil {
		t.Fatal(err)
	}
	return folder
}

// bash runs a line in the repository and returns what it printed.
func bash(t *testing.T, line string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", line)
	command.Dir = "../../.."
	output, err := command.CombinedOutput()
	return string(output), err
}
