package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/config"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)(?:\\.{3})?`")
	namedFile = regexp.MustCompile(
		"`((?:internal|web|cmd|views|jobs|migrations|static|docs|tools)/[\\w./*-]+)`")
	namedVariable = regexp.MustCompile(`\bDRAWBRIDGE_[A-Z_]*[A-Z]\b`)
	linked        = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	heading       = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchored      = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	declared      = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
)

// TestDocumentsNameWhatExists looks for each test, file, setting and section
// that a document refers to.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	tests := declaredTests(t)
	var settings []string
	for _, variable := range config.Variables() {
		settings = append(settings, variable.Name)
	}
	for _, page := range documents {
		text := readDocument(t, page)
		for _, found := range namedTest.FindAllStringSubmatch(text, -1) {
			named := func(name string) bool { return strings.HasPrefix(name, found[1]) }
			if !slices.ContainsFunc(tests, named) {
				t.Errorf("%s names the test %s, which there is not", page, found[1])
			}
		}
		for _, found := range namedFile.FindAllStringSubmatch(text, -1) {
			if matches, err := filepath.Glob("../../../" + found[1]); err != nil || len(matches) == 0 {
				t.Errorf("%s names %s, which there is not", page, found[1])
			}
		}
		for _, name := range namedVariable.FindAllString(text, -1) {
			if !slices.Contains(settings, name) {
				t.Errorf("%s names %s, which is no setting", page, name)
			}
		}
		for _, found := range linked.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("../../..", filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
			}
		}
		for _, found := range anchored.FindAllStringSubmatch(text, -1) {
			target := page
			if found[1] != "" {
				target = filepath.Join(filepath.Dir(page), found[1])
			}
			if !slices.Contains(anchors(readDocument(t, target)), found[2]) {
				t.Errorf("%s links to section %s of %s, which there is not", page, found[2], target)
			}
		}
	}
}

// declaredTests are the names of all tests.
func declaredTests(t *testing.T) []string {
	t.Helper()
	command := exec.Command("go", "list", "-f",
		`{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`+
			`{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`,
		"-tags", "chaos,upgrade,walks", "drawbridge/...")
	files, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for file := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	if len(names) < 300 {
		t.Fatalf("only %d tests were found", len(names))
	}
	return names
}

// anchors are the anchors of a page's headings.
func anchors(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(kept, " ", "-"))
	}
	return found
}

// TestArchitectureShowsEveryPackage keeps the list of packages complete.
func TestArchitectureShowsEveryPackage(t *testing.T) {
	t.Parallel()
	text := readDocument(t, "docs/ARCHITECTURE.md")
	for _, pattern := range []string{"../../../cmd/*", "../../../internal/*", "../../../web/*"} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			info, err := os.Stat(folder)
			if err == nil && info.IsDir() && !strings.Contains(text, filepath.Base(folder)+"/ ") {
				t.Errorf("docs/ARCHITECTURE.md does not show %s", folder)
			}
		}
	}
}
