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

// What lender.yaml leaves out, and lenderDocument adds from openapi.yaml: the parameters,
// headers and refusals that every operation has, and each component that is referred to.
var (
	lenderParameters = []string{"RequestId"}
	lenderWriting    = []string{"IdempotencyKey"}
	lenderHeaders    = []string{"RateLimitLimit", "RateLimitRemaining", "RateLimitReset"}
	lenderRefusals   = map[string]string{
		"401": "Unauthorized", "403": "Forbidden", "404": "OtherKind", "429": "RateLimited",
		"500": "Internal", "503": "Unavailable",
	}
	lenderWritingRefusals = map[string]string{
		"409": "Conflict", "413": "TooLarge", "415": "UnsupportedMediaType",
		"422": "IdempotencyMismatch",
	}
)

// The keys by which lender.yaml says the rest: the schema of an answer's data, and the
// schema whose properties come before a schema's own.
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
	removeChild(root, "x-examples")
	m := merging{root: root, from: partner}
	for _, path := range pairs(child(root, "paths")) {
		for _, method := range pairs(path.value) {
			m.complete(method.name != "get", method.value)
		}
	}
	setChild(root, codesKey, ownCodes(child(partner, codesKey), child(root, codesKey)))
	setChild(child(root, "components"), "securitySchemes",
		child(child(partner, "components"), "securitySchemes"))
	if err := m.fetch(root); err != nil {
		return nil, err
	}
	return root, nil
}

// ownCodes are all error codes, those that are told in words of their own among them.
func ownCodes(all, own *yaml.Node) *yaml.Node {
	codes := plain(all)
	for i, code := range codes.Content {
		for _, other := range own.Content {
			if child(other, "code").Value == child(code, "code").Value {
				codes.Content[i] = other
			}
		}
	}
	return codes
}

// pair is an entry of a mapping.
type pair struct {
	name  string
	value *yaml.Node
}

func pairs(node *yaml.Node) []pair {
	var entries []pair
	if node != nil && node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			entries = append(entries, pair{node.Content[i].Value, node.Content[i+1]})
		}
	}
	return entries
}

// merging completes a document from another one.
type merging struct{ root, from *yaml.Node }

func mapping(entries ...any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(entries); i += 2 {
		key, _ := entries[i].(string)
		value, _ := entries[i+1].(*yaml.Node)
		setChild(node, key, value)
	}
	return node
}

func refer(kind, name string) *yaml.Node {
	return mapping("$ref", text("#/components/"+kind+"/"+name))
}

// complete adds to an operation what all have.
func (m merging) complete(writes bool, operation *yaml.Node) {
	parameters := child(operation, "parameters")
	if parameters == nil {
		parameters = &yaml.Node{Kind: yaml.SequenceNode}
		setChild(operation, "parameters", parameters)
	}
	names, refusals := lenderParameters, []map[string]string{lenderRefusals}
	if writes {
		names, refusals = slices.Concat(lenderWriting, names), append(refusals, lenderWritingRefusals)
	}
	for _, name := range names {
		parameters.Content = append(parameters.Content, refer("parameters", name))
	}
	responses := child(operation, "responses")
	for _, answer := range pairs(responses) {
		if !strings.HasPrefix(answer.name, "2") {
			continue
		}
		headers := mapping("X-Request-Id", refer("headers", "RequestId"))
		for _, name := range lenderHeaders {
			setChild(headers, "RateLimit-"+strings.TrimPrefix(name, "RateLimit"),
				refer("headers", name))
		}
		if writes {
			setChild(headers, "Idempotency-Replayed", refer("headers", "IdempotencyReplayed"))
		}
		setChild(answer.value, "headers", headers)
		media := child(child(answer.value, "content"), "application/json")
		if data := child(media, dataKey); data != nil {
			setChild(media, "schema", envelopeSchema(data.Value))
			removeChild(media, dataKey)
		}
	}
	for _, common := range refusals {
		for status, name := range common {
			if child(responses, status) == nil {
				setChild(responses, status, refer("responses", name))
			}
		}
	}
	sortPairs(responses)
}

// envelopeSchema is the schema of a successful answer whose data has the named one.
func envelopeSchema(name string) *yaml.Node {
	list := func(names ...string) *yaml.Node {
		node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, name := range names {
			node.Content = append(node.Content, text(name))
		}
		return node
	}
	return mapping("type", text("object"), "required", list("timestamp", "statusCode", "result"),
		"properties", mapping(
			"timestamp", refer("schemas", "Moment"),
			"statusCode", mapping("type", text("integer"), "description", text("The HTTP status.")),
			"result", mapping("type", text("object"), "required", list("data", "error"),
				"properties", mapping("data", refer("schemas", name), "error",
					mapping("type", text("null"))))))
}

func removeChild(node *yaml.Node, key string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content = slices.Delete(node.Content, i, i+2)
			return
		}
	}
}

// sortPairs orders a mapping by its keys.
func sortPairs(node *yaml.Node) {
	entries := pairs(node)
	slices.SortFunc(entries, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	keys := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		keys[node.Content[i].Value] = node.Content[i]
	}
	node.Content = node.Content[:0]
	for _, entry := range entries {
		node.Content = append(node.Content, keys[entry.name], entry.value)
	}
}

// fetch copies each component that the tree refers to and the root lacks, and what these refer
// to in turn.
func (m merging) fetch(node *yaml.Node) error {
	if err := m.extend(node); err != nil {
		return err
	}
	if reference := child(node, "$ref"); reference != nil && node.Kind == yaml.MappingNode {
		if _, err := lookup(m.root, reference.Value); err == nil {
			return nil
		}
		found, err := m.copied(reference.Value)
		if err != nil {
			return err
		}
		parts := strings.Split(strings.TrimPrefix(reference.Value, "#/components/"), "/")
		components := child(m.root, "components")
		if child(components, parts[0]) == nil {
			setChild(components, parts[0], mapping())
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

// copied is a component of the other document, without aliases.
func (m merging) copied(reference string) (*yaml.Node, error) {
	found, err := lookup(m.from, reference)
	if err != nil {
		return nil, err
	}
	return plain(found), nil
}

// plain copies a tree with every alias replaced by what it stands for.
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

// extend puts the properties of the schema that a schema extends before its own.
func (m merging) extend(schema *yaml.Node) error {
	extends := child(schema, extendsKey)
	if extends == nil || schema.Kind != yaml.MappingNode {
		return nil
	}
	base, err := m.copied(extends.Value)
	if err != nil {
		return err
	}
	for _, part := range []string{"required", "properties"} {
		inherited := child(base, part)
		inherited.Content = append(inherited.Content, child(schema, part).Content...)
		setChild(schema, part, inherited)
	}
	removeChild(schema, extendsKey)
	return nil
}
