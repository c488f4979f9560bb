package docs

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The JSON Schemas of the webhook events, one file per kind, made from
// openapi.yaml by `go test ./web/docs -update` and kept beside it so that
// other languages and other packages' tests can read them.

// Kinds lists the webhook events in the order of the document.
func Kinds() ([]string, error) {
	doc, err := readDocument(ExampleBaseURL)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, hook := range doc.Webhooks {
		kinds = append(kinds, hook.Name)
	}
	return kinds, nil
}

// Schema returns the JSON Schema (2020-12) of one kind of event, free of
// references. An unknown kind is an error.
func Schema(kind string) ([]byte, error) {
	text, err := content.ReadFile("schemas/" + kind + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", kind, err)
	}
	return text, nil
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
