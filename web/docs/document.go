package docs

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
)

//go:embed openapi.yaml
var source []byte

// Document returns the OpenAPI document as YAML with base as its server
// address and the currency of its amounts, as it is served at /docs/openapi.yaml.
func Document(base, currency string) []byte { return at(base, currency, source) }

// at replaces the example's addresses and currency by those of a server.
func at(base, currency string, source []byte) []byte {
	source = bytes.ReplaceAll(source, []byte("`"+ExampleCurrency+"`"), []byte("`"+currency+"`"))
	moved := bytes.ReplaceAll(source, []byte(ExampleBaseURL), []byte(base))
	return bytes.ReplaceAll(moved, []byte(origin(ExampleBaseURL)+Prefix), []byte(origin(base)+Prefix))
}

// origin returns an address up to its path.
func origin(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return parsed.Scheme + "://" + parsed.Host
}

// document is the part of openapi.yaml that the pages need, with references resolved and
// orders kept. An OpenAPI library would lose the order of fields and examples, which
// readers see.
type document struct {
	Info     struct{ Title, Description string }
	Tags     []struct{ Name, Description string }
	Paths    ordered[pathItem]
	Webhooks ordered[pathItem]
	Codes    []docsview.ErrorCode `yaml:"x-error-codes"`

	// operations are those of Paths in order.
	operations []operation
	base       string
	root       *yaml.Node
}

// pathItem maps a lower-case method to its operation.
type pathItem = ordered[operation]

type operation struct {
	Method, Path string `yaml:"-"`

	ID          string `yaml:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Parameters  []parameter
	Body        *requestBody `yaml:"requestBody"`
	Responses   ordered[response]
	Errors      []string `yaml:"x-errors"`
	// Tell and Cause are for webhooks: how a receiver recognises the event, and what triggers
	// it.
	Tell  string `yaml:"x-tell"`
	Cause string `yaml:"x-cause"`
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema
	Example               yaml.Node
}

type requestBody struct{ Content ordered[mediaType] }

type response struct{ Content ordered[mediaType] }

type mediaType struct {
	Schema   schema
	Examples ordered[example]
}

type example struct {
	Summary string
	Value   yaml.Node
}

// named is one entry of an ordered map.
type named[T any] struct {
	Name  string
	Value T
}

// ordered is a mapping in the order of the source.
type ordered[T any] []named[T]

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a mapping", node.Line)
	}
	for name, value := range pairs(node) {
		if name == component {
			continue
		}
		entry := named[T]{Name: name}
		if err := value.Decode(&entry.Value); err != nil {
			return err
		}
		*o = append(*o, entry)
	}
	return nil
}

// get returns the entry with a name.
func (o ordered[T]) get(name string) (T, bool) {
	for _, entry := range o {
		if entry.Name == name {
			return entry.Value, true
		}
	}
	var none T
	return none, false
}

// readDocument parses a document written for one base address.
func readDocument(base string, source []byte) (*document, error) {
	root, err := parseYAML(source)
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
	for _, path := range doc.Paths {
		for _, method := range path.Value {
			op := method.Value
			op.Method, op.Path = strings.ToUpper(method.Name), path.Name
			doc.operations = append(doc.operations, op)
		}
	}
	return doc, nil
}
