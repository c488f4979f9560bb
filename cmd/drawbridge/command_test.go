package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// cli runs command lines on the test's own database.
type cli struct {
	url       string
	variables map[string]string
	// databaseTimeout is how long the commands wait for the database, 0 for the program's default.
	databaseTimeout time.Duration
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	url := pgtest.URL(t)
	return &cli{url: url, variables: map[string]string{
		"DATABASE_URL":           url,
		"DRAWBRIDGE_SECRETS_KEY": secret.GenerateKey(),
		"DRAWBRIDGE_BLOB_URL":    "file://" + t.TempDir(),
	}}
}

// result is the exit status and the output of a command.
type result struct {
	status         int
	stdout, stderr string
}

func (d *cli) run(t *testing.T, args ...string) result {
	t.Helper()
	return d.runWith(t, "", args...)
}

// runWith is run with text on the standard input.
func (d *cli) runWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	// The logger is shared by the whole process, so concurrent tests write to this
	// stderr too.
	var stdout bytes.Buffer
	var stderr lockedBuffer
	status := run(t.Context(), environment{
		args: args, stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		getenv:          func(name string) string { return d.variables[name] },
		databaseTimeout: d.databaseTimeout,
	})
	return result{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

// lockedBuffer may be written to and read by several goroutines.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// document runs a command with --json, which must succeed and print exactly one
// JSON document.
func (d *cli) document(t *testing.T, args ...string) map[string]any {
	t.Helper()
	got := d.run(t, append(args, "--json")...)
	if got.status != exitOK {
		t.Fatalf("%q ended with %d: %s", args, got.status, got.stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	var document map[string]any
	if err := decoder.Decode(&document); err != nil || decoder.More() {
		t.Fatalf("%q printed %q, want one JSON document: %v", args, got.stdout, err)
	}
	return document
}

// text runs a command without --json, which must succeed.
func (d *cli) text(t *testing.T, args ...string) string {
	t.Helper()
	got := d.run(t, args...)
	if got.status != exitOK {
		t.Fatalf("%q ended with %d: %s", args, got.status, got.stderr)
	}
	return got.stdout
}

func wantKeys(t *testing.T, document map[string]any, keys ...string) {
	t.Helper()
	slices.Sort(keys)
	if diff := cmp.Diff(keys, slices.Sorted(maps.Keys(document))); diff != "" {
		t.Errorf("fields of the document:\n%s", diff)
	}
}

// list returns the entries of a list command's document.
func list(t *testing.T, document map[string]any, plural string) []map[string]any {
	t.Helper()
	entries, ok := document[plural].([]any)
	if !ok {
		t.Fatalf("%v has no array %q", document, plural)
	}
	var rows []map[string]any
	for _, entry := range entries {
		rows = append(rows, entry.(map[string]any))
	}
	return rows
}
