package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readSchema parses one schema that may refer to the real document's.
func readSchema(t *testing.T, text string) schema {
	t.Helper()
	doc, err := readDocument(ExampleBaseURL, source)
	if err != nil {
		t.Fatal(err)
	}
	node, err := parseYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := resolve(doc.root, node)
	if err != nil {
		t.Fatal(err)
	}
	var parsed schema
	if err := resolved.Decode(&parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestTypesInTheWordsOfAReader(t *testing.T) {
	t.Parallel()
	cases := []struct{ schema, want string }{
		{"{type: string}", "string"},
		{"{type: [string, 'null']}", "string or null"},
		{"{type: 'null'}", "null"},
		{"{type: string, format: date}", "date"},
		{"{type: string, format: binary}", "file"},
		{"{$ref: '#/components/schemas/Amount'}", "amount"},
		{"{$ref: '#/components/schemas/Uid', description: x}", "uuid"},
		{"{type: array, items: {$ref: '#/components/schemas/Uid'}}", "array of uuids"},
		{"{type: array, items: {type: object}}", "array of objects"},
		{"{anyOf: [{type: object}, {type: 'null'}]}", "object or null"},
	}
	for _, test := range cases {
		if got := readSchema(t, test.schema).typeText(); got != test.want {
			t.Errorf("%s is %q, want %q", test.schema, got, test.want)
		}
	}
}

func TestFieldsOfNestedObjects(t *testing.T) {
	t.Parallel()
	parsed := readSchema(t, `
type: object
required: [a]
properties:
  a:
    type: object
    required: [b]
    properties:
      b: {type: string, enum: [x, y]}
  c:
    type: array
    items:
      type: object
      properties:
        d: {type: integer, description: How many.}
`)
	type row struct {
		Name, Type, Text string
		Required         bool
		Values           int
	}
	var got []row
	for _, field := range parsed.fields("") {
		got = append(got, row{field.Name, field.Type, field.Text, field.Required, len(field.Values)})
	}
	want := []row{
		{"a", "object", "", true, 0},
		{"a.b", "string", "", true, 2},
		{"c", "array of objects", "", false, 0},
		{"c[].d", "integer", "How many.", false, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
