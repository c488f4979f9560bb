package docs

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed lender.yaml
var lenderSource []byte

// The extension keys of lender.yaml: the schema of an answer's data, and the schema whose
// properties precede a schema's own.
const (
	dataKey    = "x-data"
	extendsKey = "x-extends"
	codesKey   = "x-error-codes"
)

// LenderDocument returns the OpenAPI document of the lender's own systems as YAML with base as
// its server address and the currency of its amounts, as it is served at /docs/lender/openapi.yaml.
func LenderDocument(base, currency string) ([]byte, error) {
	root, err := lenderRoot(base, currency)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("writing the lender's document: %w", err)
	}
	return out.Bytes(), nil
}

func lenderRoot(base, currency string) (*yaml.Node, error) {
	root, err := parseYAML(at(base, currency, lenderSource))
	if err != nil {
		return nil, err
	}
	partner, err := parseYAML(Document(base, currency))
	if err != nil {
		return nil, err
	}
	root = plain(root)
	m := merging{root: root, from: partner}
	for _, path := range pairs(child(root, "paths")) {
		for method, operation := range pairs(path) {
			common := child(root, "x-writing")
			if method == "get" {
				common = child(root, "x-reading")
			}
			complete(operation, common, child(root, "x-envelope"))
		}
	}
	for _, key := range []string{"x-examples", "x-reading", "x-writing", "x-envelope"} {
		removeChild(root, key)
	}
	// All error codes, including those that lender.yaml describes in its own words.
	codes := plain(child(partner, codesKey))
	for i, code := range codes.Content {
		for _, own := range child(root, codesKey).Content {
			if child(own, "code").Value == child(code, "code").Value {
				codes.Content[i] = own
			}
		}
	}
	setChild(root, codesKey, codes)
	setChild(child(root, "components"), "securitySchemes",
		child(child(partner, "components"), "securitySchemes"))
	if err := m.fetch(root); err != nil {
		return nil, err
	}
	return root, nil
}

// merging completes the document root with components of another one.
type merging struct{ root, from *yaml.Node }

// complete adds to an operation what all reading, or all writing, operations have, and
// wraps its answers in the envelope.
func complete(operation, common, envelope *yaml.Node) {
	parameters := child(operation, "parameters")
	if parameters == nil {
		parameters = &yaml.Node{Kind: yaml.SequenceNode}
		setChild(operation, "parameters", parameters)
	}
	parameters.Content = append(parameters.Content, child(common, "parameters").Content...)
	responses := child(operation, "responses")
	for status, answer := range pairs(responses) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		setChild(answer, "headers", child(common, "headers"))
		media := child(child(answer, "content"), "application/json")
		if data := child(media, dataKey); data != nil {
			schema := plain(envelope)
			setChild(child(child(child(schema, "properties"), "result"), "properties"), "data",
				&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
					text("$ref"), text("#/components/schemas/" + data.Value),
				}})
			setChild(media, "schema", schema)
			removeChild(media, dataKey)
		}
	}
	for status, refusal := range pairs(child(common, "responses")) {
		if child(responses, status) == nil {
			setChild(responses, status, refusal)
		}
	}
	ordered := slices.SortedFunc(slices.Chunk(responses.Content, 2), func(a, b []*yaml.Node) int {
		return strings.Compare(a[0].Value, b[0].Value)
	})
	responses.Content = slices.Concat(ordered...)
}

func removeChild(node *yaml.Node, key string) {
	if at := place(node, key); at > 0 {
		node.Content = slices.Delete(node.Content, at-1, at+1)
	}
}

// fetch copies, recursively, each component that the tree refers to and the root lacks. The
// properties of an extended schema are inserted before the extending schema's own.
func (m merging) fetch(node *yaml.Node) error {
	if extends := child(node, extendsKey); extends != nil {
		base, err := lookup(m.from, extends.Value)
		if err != nil {
			return err
		}
		base = plain(base)
		for _, part := range []string{"required", "properties"} {
			inherited := child(base, part)
			inherited.Content = append(inherited.Content, child(node, part).Content...)
			setChild(node, part, inherited)
		}
		removeChild(node, extendsKey)
	}
	if reference := child(node, "$ref"); reference != nil {
		if _, err := lookup(m.root, reference.Value); err == nil {
			return nil
		}
		found, err := lookup(m.from, reference.Value)
		if err != nil {
			return err
		}
		found = plain(found)
		parts := strings.Split(strings.TrimPrefix(reference.Value, "#/components/"), "/")
		components := child(m.root, "components")
		if child(components, parts[0]) == nil {
			setChild(components, parts[0], &yaml.Node{Kind: yaml.MappingNode})
		}
		setChild(child(components, parts[0]), parts[1], found)
		return m.fetch(found)
	}
	for _, inner := range node.Content {
		if err := m.fetch(inner); err != nil {
			return err
		}
	}
	return nil
}

// plain copies a tree and replaces every alias by its target.
func plain(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return plain(node.Alias)
	}
	copied := *node
	copied.Anchor, copied.Content = "", make([]*yaml.Node, len(node.Content))
	for i, inner := range node.Content {
		copied.Content[i] = plain(inner)
	}
	return &copied
}
