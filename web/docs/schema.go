package docs

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"drawbridge/views/docsview"
)

// schema is the part of JSON Schema that the document uses.
type schema struct {
	Component   string          `yaml:"x-component"`
	Type        typeNames       `yaml:"type"`
	Format      string          `yaml:"format"`
	Description string          `yaml:"description"`
	Const       any             `yaml:"const"`
	Enum        []any           `yaml:"enum"`
	Required    []string        `yaml:"required"`
	Properties  ordered[schema] `yaml:"properties"`
	Items       *schema         `yaml:"items"`
	AnyOf       []schema        `yaml:"anyOf"`
	MediaType   string          `yaml:"contentMediaType"`
}

// typeNames is one type or a list of them.
type typeNames []string

// UnmarshalYAML reads a scalar or a sequence.
func (t *typeNames) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = typeNames{node.Value}
		return nil
	}
	var list []string
	if err := node.Decode(&list); err != nil {
		return fmt.Errorf("reading a type: %w", err)
	}
	*t = list
	return nil
}

// labels name the string components in the words of a reader.
var labels = map[string]string{
	"Uid": "uuid", "Amount": "amount", "AmountInput": "amount",
	"Percentage": "percentage", "Moment": "date-time", "EventMoment": "date-time",
	"CertificateMetadataText": "JSON text",
}

// flat folds an anyOf with null into its other branch.
func (s schema) flat() (folded schema, nullable bool) {
	if len(s.AnyOf) == 2 {
		return s.AnyOf[0], true
	}
	for _, name := range s.Type {
		nullable = nullable || name == "null"
	}
	return s, nullable
}

// typeText says the type in a few words: "array of uuids", "amount or null".
func (s schema) typeText() string {
	folded, nullable := s.flat()
	text := folded.plainType()
	if nullable && text != "null" {
		text += " or null"
	}
	return text
}

func (s schema) plainType() string {
	if label := labels[s.Component]; label != "" {
		return label
	}
	name := ""
	for _, candidate := range s.Type {
		if candidate != "null" || len(s.Type) == 1 {
			name = candidate
		}
	}
	switch {
	case name == "array" && s.Items != nil:
		return "array of " + plural(s.Items.typeText())
	case s.Format == "binary":
		return "file"
	case s.Format != "":
		return s.Format
	}
	return name
}

func plural(noun string) string {
	if strings.HasSuffix(noun, "s") {
		return noun
	}
	return noun + "s"
}

// values lists what an enumerated or constant schema allows.
func (s schema) values() []string {
	var texts []string
	if s.Const != nil {
		texts = append(texts, fmt.Sprint(s.Const))
	}
	for _, value := range s.Enum {
		if value != nil {
			texts = append(texts, fmt.Sprint(value))
		}
	}
	return texts
}

// fields lists the properties of an object, nested ones after their parent
// with names joined by dots.
func (s schema) fields(prefix string) []docsview.Field {
	folded, _ := s.flat()
	required := map[string]bool{}
	for _, name := range folded.Required {
		required[name] = true
	}
	var rows []docsview.Field
	for _, property := range folded.Properties {
		inner, _ := property.Value.flat()
		rows = append(rows, docsview.Field{
			Name:     prefix + property.Name,
			Type:     property.Value.typeText(),
			Required: required[property.Name],
			Text:     inner.Description,
			Values:   inner.values(),
		})
		rows = append(rows, inner.nested(prefix+property.Name)...)
	}
	return rows
}

// nested lists the fields of an object or of the objects in an array.
func (s schema) nested(name string) []docsview.Field {
	if s.Items != nil {
		inner, _ := s.Items.flat()
		return inner.fields(name + "[].")
	}
	return s.fields(name + ".")
}
