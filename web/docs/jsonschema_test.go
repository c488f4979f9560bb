package docs

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write schemas/ from openapi.yaml")

// The committed schemas are what the document says, no more, no less.
func TestSchemasAreFresh(t *testing.T) {
	t.Parallel()
	doc, err := readDocument(ExampleBaseURL)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		made, err := doc.makeSchema(kind)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("schemas", kind+".json")
		if *update {
			if err := os.WriteFile(name, made, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := Schema(kind)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), string(made)); diff != "" {
			t.Errorf("%s is stale; run go test ./web/docs -update\n%s", name, diff)
		}
	}
	if files, _ := filepath.Glob("schemas/*.json"); len(files) != len(kinds) {
		t.Errorf("schemas/ has %d files, the document %d events", len(files), len(kinds))
	}
}
