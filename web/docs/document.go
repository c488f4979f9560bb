package docs

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var source []byte

// Document returns the OpenAPI document as YAML with base as its server
// address, as it is served at /docs/openapi.yaml.
func Document(base string) []byte {
	return bytes.ReplaceAll(source, []byte(ExampleBaseURL), []byte(base))
}

// document is the view of openapi.yaml that the pages are made of: references
// resolved, orders kept.
type document struct {
	Info struct {
		Title       string `yaml:"title"`
		Version     string `yaml:"version"`
		Summary     string `yaml:"summary"`
		Description string `yaml:"description"`
	} `yaml:"info"`
	Tags     []tag             `yaml:"tags"`
	Paths    ordered[pathItem] `yaml:"paths"`
	Webhooks ordered[pathItem] `yaml:"webhooks"`
	Codes    []errorCode       `yaml:"x-error-codes"`
	base     string
	root     *yaml.Node
}

type tag struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// errorCode is one entry of the closed list of section 7.
type errorCode struct {
	Code   string `yaml:"code"`
	Status int    `yaml:"status"`
	Title  string `yaml:"title"`
	Cause  string `yaml:"cause"`
	Cure   string `yaml:"cure"`
}

// pathItem maps a lower-case method to its operation.
type pathItem = ordered[operation]

type operation struct {
	ID          string            `yaml:"operationId"`
	Tags        []string          `yaml:"tags"`
	Summary     string            `yaml:"summary"`
	Description string            `yaml:"description"`
	Parameters  []parameter       `yaml:"parameters"`
	Body        *requestBody      `yaml:"requestBody"`
	Responses   ordered[response] `yaml:"responses"`
	Errors      []string          `yaml:"x-errors"`
	// Tell and Cause are for webhooks: how a receiver knows the event, and what
	// makes it happen.
	Tell  string `yaml:"x-tell"`
	Cause string `yaml:"x-cause"`
	// Needs names what must exist before the example parameters can be sent.
	Needs string `yaml:"x-needs"`
}

type parameter struct {
	Name        string    `yaml:"name"`
	In          string    `yaml:"in"`
	Required    bool      `yaml:"required"`
	Description string    `yaml:"description"`
	Schema      schema    `yaml:"schema"`
	Example     yaml.Node `yaml:"example"`
}

type requestBody struct {
	Required    bool               `yaml:"required"`
	Description string             `yaml:"description"`
	Content     ordered[mediaType] `yaml:"content"`
}

type mediaType struct {
	Schema   schema           `yaml:"schema"`
	Examples ordered[example] `yaml:"examples"`
}

type example struct {
	Summary string    `yaml:"summary"`
	Value   yaml.Node `yaml:"value"`
	Expect  int       `yaml:"x-expect"`
	Needs   string    `yaml:"x-needs"`
}

type response struct {
	Description string             `yaml:"description"`
	Headers     ordered[header]    `yaml:"headers"`
	Content     ordered[mediaType] `yaml:"content"`
}

type header struct {
	Description string `yaml:"description"`
	Required    bool   `yaml:"required"`
	Schema      schema `yaml:"schema"`
}

// named is one entry of an ordered map.
type named[T any] struct {
	Name  string
	Value T
}

// ordered is a mapping in the order of its source.
type ordered[T any] []named[T]

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a mapping", node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == component {
			continue
		}
		entry := named[T]{Name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&entry.Value); err != nil {
			return err
		}
		*o = append(*o, entry)
	}
	return nil
}

// get returns the entry of a name.
func (o ordered[T]) get(name string) (T, bool) {
	for _, entry := range o {
		if entry.Name == name {
			return entry.Value, true
		}
	}
	var none T
	return none, false
}

// readDocument parses the embedded document for one base address.
func readDocument(base string) (*document, error) {
	root, err := parseYAML(Document(base))
	if err != nil {
		return nil, err
	}
	resolved, err := resolve(root, root)
	if err != nil {
		return nil, err
	}
	doc := &document{base: base, root: root}
	if err := resolved.Decode(doc); err != nil {
		return nil, fmt.Errorf("reading openapi.yaml: %w", err)
	}
	return doc, nil
}

// each calls visit for every operation in the order of the document.
func (d *document) each(visit func(method, path string, op operation)) {
	for _, item := range d.Paths {
		for _, op := range item.Value {
			visit(strings.ToUpper(op.Name), item.Name, op.Value)
		}
	}
}
