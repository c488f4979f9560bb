package contracttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bodies checks JSON bodies against the schemas of a document. Each schema is compiled
// once; the OpenAPI library compiles it for each body, which took a third of the time of
// all requests of a test.
type bodies map[*openapi3.Schema]*jsonschema.Schema

// jsonType is the media type of requests, answers and events.
const jsonType = "application/json"

// jsonSchema returns the schema of an operation's JSON bodies, nil if it has none.
func jsonSchema(content openapi3.Content, contentType string) *openapi3.Schema {
	mediaType, _, err := mime.ParseMediaType(contentType)
	media := content[jsonType]
	if err != nil || mediaType != jsonType || media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// newBodies compiles the schemas of all JSON bodies of a document in its present state.
func newBodies(document *openapi3.T) (bodies, error) {
	schemas := map[string]*openapi3.SchemaRef{}
	add := func(content openapi3.Content) {
		if media := content[jsonType]; media != nil && media.Schema != nil {
			schemas[fmt.Sprintf("%p", media.Schema.Value)] = media.Schema
		}
	}
	items := slices.Collect(maps.Values(document.Paths.Map()))
	for _, item := range slices.AppendSeq(items, maps.Values(document.Webhooks)) {
		for _, operation := range item.Operations() {
			if operation.RequestBody != nil {
				add(operation.RequestBody.Value.Content)
			}
			for _, response := range operation.Responses.Map() {
				add(response.Value.Content)
			}
		}
	}
	text, err := json.Marshal(map[string]any{
		"$defs": schemas, "components": map[string]any{"schemas": document.Components.Schemas},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the schemas: %w", err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading the schemas: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(anywhere, resource); err != nil {
		return nil, fmt.Errorf("adding the schemas: %w", err)
	}
	compiled := bodies{}
	for name, schema := range schemas {
		if compiled[schema.Value], err = compiler.Compile(anywhere + "#/$defs/" + name); err != nil {
			return nil, fmt.Errorf("compiling a schema: %w", err)
		}
	}
	return compiled, nil
}

// check returns how a body differs from its schema.
func (b bodies) check(of *openapi3.Schema, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	return b[of].Validate(value)
}
