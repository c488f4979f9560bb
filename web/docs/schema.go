package docs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
)

// schema is the part of JSON Schema that the document uses.
type schema struct {
	Component   string `yaml:"x-component"`
	Type        typeNames
	Format      string
	Description string
	Const       any
	Enum        []any
	Required    []string
	Properties  ordered[schema]
	Items       *schema
	AnyOf       []schema `yaml:"anyOf"`
}

// typeNames is a type or a list of types.
type typeNames []string

// UnmarshalYAML reads a scalar or a sequence.
func (t *typeNames) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = typeNames{node.Value}
		return nil
	}
	return node.Decode((*[]string)(t))
}

// labels are the names of string components in the types that readers see.
var labels = map[string]string{
	"Uid": "uuid", "Amount": "amount", "AmountInput": "amount",
	"Percentage": "percentage", "Moment": "date-time", "EventMoment": "date-time",
	"CertificateMetadataText": "JSON text",
}

// flat reduces an anyOf with null to its other branch.
func (s schema) flat() (folded schema, nullable bool) {
	if len(s.AnyOf) == 2 {
		return s.AnyOf[0], true
	}
	return s, slices.Contains(s.Type, "null")
}

// typeText describes the type in a few words: "array of uuids", "amount or null".
func (s schema) typeText() string {
	folded, nullable := s.flat()
	text := cmp.Or(labels[folded.Component], folded.Format)
	for _, name := range folded.Type {
		if text == "" && (name != "null" || len(folded.Type) == 1) {
			text = name
		}
	}
	switch {
	case text == "array" && folded.Items != nil:
		text = "array of " + strings.TrimSuffix(folded.Items.typeText(), "s") + "s"
	case text == "binary":
		text = "file"
	}
	if nullable && text != "null" {
		text += " or null"
	}
	return text
}

// values lists the values that an enumerated or constant schema allows.
func (s schema) values() []string {
	var texts []string
	for _, value := range append([]any{s.Const}, s.Enum...) {
		if value != nil {
			texts = append(texts, fmt.Sprint(value))
		}
	}
	return texts
}

// fields lists the properties of an object, nested ones after their parent with dotted
// names.
func (s schema) fields(prefix string) []docsview.Field {
	folded, _ := s.flat()
	var rows []docsview.Field
	for _, property := range folded.Properties {
		inner, _ := property.Value.flat()
		name := prefix + property.Name
		rows = append(rows, docsview.Field{
			Name:     name,
			Type:     property.Value.typeText(),
			Required: slices.Contains(folded.Required, property.Name),
			Text:     inner.Description,
			Values:   inner.values(),
		})
		if inner.Items != nil {
			rows = append(rows, inner.Items.fields(name+"[].")...)
		} else {
			rows = append(rows, inner.fields(name+".")...)
		}
	}
	return rows
}
