package e2etest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// Binary is the program under test.
var Binary string

// Main builds the program, runs a package's tests and returns its exit status. Up to atOnce
// tests run at the same time, unless -parallel is given: tests that mostly wait for processes
// are worth running together, browsers are not.
func Main(m *testing.M, atOnce int) int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "drawbridge-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	if Binary, err = Build(folder, "drawbridge"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Programs names a folder with programs built for several packages; make test sets this variable.
const Programs = "DRAWBRIDGE_TEST_PROGRAMS"

// Build returns the path of a program below cmd, which it builds in folder unless it exists.
func Build(folder, name string) (string, error) {
	if built := os.Getenv(Programs); built != "" {
		return filepath.Join(built, name), nil
	}
	path := filepath.Join(folder, name)
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "drawbridge/cmd/"+name)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, output)
	}
	return path, nil
}

// Harness is a test's own database and folder, in which commands run.
type Harness struct {
	T      *testing.T
	Folder string
	Env    map[string]string
	// Program is the program under test, or an earlier release.
	Program string
}

// New is a harness with a migrated database.
func New(t *testing.T) *Harness {
	t.Helper()
	return NewOn(t, pgtest.URL(t))
}

// NewOn is a harness on a database that the test provides.
func NewOn(t *testing.T, databaseURL string) *Harness {
	t.Helper()
	return &Harness{T: t, Folder: t.TempDir(), Program: Binary, Env: map[string]string{
		"DATABASE_URL":             databaseURL,
		"DRAWBRIDGE_LISTEN":        "127.0.0.1:0",
		"DRAWBRIDGE_WEBHOOK_RETRY": "100ms,200ms",
	}}
}

// Command prepares a command of the program.
func (w *Harness) Command(args ...string) *exec.Cmd {
	command := exec.Command(w.Program, args...)
	command.Dir = w.Folder
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH"), "HOME="+w.Folder)
	for name, value := range w.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	return command
}

// Result is the exit status and the output of a command.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// Exit statuses of a command that failed, and of one that was used wrongly.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// NewWithoutDatabase is a harness for commands that need no database.
func NewWithoutDatabase(t *testing.T, vars map[string]string) *Harness {
	t.Helper()
	return &Harness{T: t, Folder: t.TempDir(), Program: Binary, Env: vars}
}

// Run runs a command to its end.
func (w *Harness) Run(stdin string, args ...string) Result {
	w.T.Helper()
	command := w.Command(args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Stdin = strings.NewReader(stdin)
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		w.T.Fatalf("running %v: %v", args, err)
	}
	return Result{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// JSON runs a command that must succeed and decodes the document that it prints.
func (w *Harness) JSON(into any, args ...string) {
	w.T.Helper()
	got := w.Run("", append(args, "--json")...)
	if got.Status != 0 {
		w.T.Fatalf("%v ended with %d: %s", args, got.Status, got.Stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(got.Stdout))
	if err := decoder.Decode(into); err != nil {
		w.T.Fatalf("%v printed %q: %v", args, got.Stdout, err)
	}
	if decoder.More() {
		w.T.Fatalf("%v printed more than one document: %q", args, got.Stdout)
	}
}

// DemoData loads the demo data set and returns the part that tests use.
func (w *Harness) DemoData() Demo {
	w.T.Helper()
	var data Demo
	w.JSON(&data, "demo")
	return data
}

// Open connects to the harness's database.
func (w *Harness) Open(t *testing.T) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), w.Env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Tool runs a program that comes with Postgres.
func (w *Harness) Tool(name string, args ...string) string {
	w.T.Helper()
	path, err := exec.LookPath(name)
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err != nil && len(found) > 0 {
		path = found[len(found)-1]
	}
	output, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		w.T.Fatalf("%s ended with %v: %s", name, err, output)
	}
	return string(output)
}

// Execute runs a statement; it works even after the test has ended.
func (w *Harness) Execute(db *postgres.DB, statement string) {
	w.T.Helper()
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		w.T.Errorf("%s: %v", statement, err)
	}
}

// Doctor runs the doctor and returns its findings by name.
func Doctor(t *testing.T, w *Harness, status int, args ...string) map[string]Check {
	t.Helper()
	got := w.Run("", append([]string{"doctor", "--json"}, args...)...)
	if got.Status != status {
		t.Fatalf("doctor ended with %d, want %d: %s%s", got.Status, status, got.Stdout, got.Stderr)
	}
	var document struct {
		Checks []Check `json:"checks"`
	}
	if err := json.Unmarshal([]byte(got.Stdout), &document); err != nil {
		t.Fatalf("doctor printed %q: %v", got.Stdout, err)
	}
	found := map[string]Check{}
	for _, checkup := range document.Checks {
		found[checkup.Name] = checkup
	}
	return found
}

// Audited returns the audit log of a subject, after checking that it contains no
// secret.
func (w *Harness) Audited(t *testing.T, kind, uid string) string {
	t.Helper()
	var actions string
	var leaks int
	err := w.Open(t).QueryRowContext(t.Context(), `
		SELECT string_agg(split_part(action, '.', 2), ', ' ORDER BY entry_id),
		       count(*) FILTER (WHERE concat(before, after) LIKE '%brand-new-secret%')
		  FROM audit_log
		 WHERE subject_kind = $1
		   AND subject = $2`, kind, uid).Scan(&actions, &leaks)
	if err != nil || leaks > 0 {
		t.Errorf("%d entries show a secret (%v)", leaks, err)
	}
	return actions
}
