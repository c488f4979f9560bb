package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documented are the options of this program in a document, by make or by go.
var documented = regexp.MustCompile(
	`make bench BENCH=(?:'([^']*)'|(\S+))|go run \./cmd/bench ([^` + "`\n&]*)")

// TestDocumentedOptionsAreTaken has the parser of the command line read what the
// documents say.
func TestDocumentedOptionsAreTaken(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, performance := 0, ""
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(page) == "PERFORMANCE.md" {
			performance = string(text)
		}
		for _, found := range documented.FindAllStringSubmatch(string(text), -1) {
			seen++
			options := strings.Trim(strings.Join(found[1:], ""), " `")
			if _, err := parse(strings.Fields(options), io.Discard); err != nil {
				t.Errorf("%s names the options %q: %v", page, options, err)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d calls were found", seen)
	}
	for _, name := range sectionNames() {
		if !strings.Contains(performance, name) {
			t.Errorf("docs/PERFORMANCE.md does not name the section %s", name)
		}
	}
}
