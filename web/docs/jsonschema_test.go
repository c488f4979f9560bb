package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// The JSON Schemas of the webhook events, one file per kind, are generated from
// openapi.yaml by `go test ./web/docs -update` and committed beside it, for use by other
// languages and other packages' tests.

var update = flag.Bool("update", false, "write schemas/ from openapi.yaml")

// The committed schemas are exactly those generated from the document.
func TestSchemasAreFresh(t *testing.T) {
	t.Parallel()
	doc, err := readDocument(ExampleBaseURL, source)
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range doc.Webhooks {
		kind := hook.Name
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
		committed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), string(made)); diff != "" {
			t.Errorf("%s is stale; run go test ./web/docs -update\n%s", name, diff)
		}
	}
	if files, _ := filepath.Glob("schemas/*.json"); len(files) != len(doc.Webhooks) {
		t.Errorf("schemas/ has %d files, the document %d events", len(files), len(doc.Webhooks))
	}
}

// makeSchema derives the schema of one kind from the document.
func (d *document) makeSchema(kind string) ([]byte, error) {
	body := d.root
	for _, key := range []string{
		"webhooks", kind, "post", "requestBody", "content", "application/json", "schema",
	} {
		body = child(body, key)
	}
	if body == nil {
		return nil, fmt.Errorf("making the schema of %s: no such event", kind)
	}
	resolved, err := resolve(d.root, body)
	if err != nil {
		return nil, err
	}
	head := []*yaml.Node{
		text("$schema"), text("https://json-schema.org/draft/2020-12/schema"),
		text("$id"), text("urn:drawbridge:webhook:" + kind),
		text("title"), text(kind),
	}
	resolved.Content = append(head, resolved.Content...)
	written, err := toJSON(resolved)
	if err != nil {
		return nil, err
	}
	return append(written, '\n'), nil
}
