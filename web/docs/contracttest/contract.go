// Package contracttest checks the requests and answers of a running server against the
// OpenAPI document of package docs, so that neither can drift from the other.
//
// It is for tests. Wrap a client's transport with Transport, and every exchange of a test
// suite is checked; Examples returns each example request of the document, ready to be
// sent.
package contracttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"drawbridge/web/docs"
)

// Contract is the loaded document.
type Contract struct {
	// Document is the document as loaded, except that the objects of answers are closed: they
	// allow only documented fields, so that a field added only to the code is found.
	Document *openapi3.T
	// Lender is the document of the lender's own systems, closed in the same way.
	Lender            *openapi3.T
	partners, lenders part
	// base is the address of the server; requests are matched as if sent to anywhere.
	base string
}

// part is what requests and answers of one document are checked with.
type part struct {
	router routers.Router
	bodies bodies
}

// anywhere is the address that the documents are loaded for. Loading is slow, so it is done
// once for all servers of a process.
const anywhere = "http://drawbridge.invalid/api"

// fileTypes are the allowed types of upload parts; the validating library reads only the
// media types that are registered with it.
var fileTypes = []string{
	"application/pdf", "application/msword", "application/vnd.ms-excel",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"image/jpeg", "image/png", "image/webp",
}

// Load reads and validates the documents, including their examples, for a server whose
// address before /v2 is base, for example "http://127.0.0.1:8080/api". All contracts share
// the documents.
func Load(base string) (*Contract, error) {
	read, err := readOnce()
	read.base = base
	return &read, err
}

var readOnce = sync.OnceValues(func() (c Contract, err error) {
	for _, fileType := range fileTypes { // in a table that all goroutines share
		openapi3filter.RegisterBodyDecoder(fileType, openapi3filter.FileBodyDecoder)
	}
	partnerSource := docs.Document(anywhere, docs.ExampleCurrency)
	if c.Document, c.partners, err = loadDocument(partnerSource); err != nil {
		return c, err
	}
	source, err := docs.LenderDocument(anywhere, docs.ExampleCurrency)
	if err != nil {
		return c, fmt.Errorf("making the lender's document: %w", err)
	}
	c.Lender, c.lenders, err = loadDocument(source)
	return c, err
})

func loadDocument(source []byte) (document *openapi3.T, by part, err error) {
	document, err = openapi3.NewLoader().LoadFromData(source)
	if err != nil {
		return nil, part{}, fmt.Errorf("loading openapi.yaml: %w", err)
	}
	if err := document.Validate(context.Background(),
		openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation(),
		openapi3.EnableSchemaFormatValidation(), openapi3.EnableMultiError()); err != nil {
		return nil, part{}, fmt.Errorf("validating openapi.yaml: %w", err)
	}
	closeAnswers(document)
	if by.router, err = legacy.NewRouter(document); err != nil {
		return nil, part{}, fmt.Errorf("routing openapi.yaml: %w", err)
	}
	by.bodies, err = newBodies(document)
	return document, by, err
}

// closeAnswers forbids undocumented fields in every answer and event. (Partners are told to
// expect additional fields.)
func closeAnswers(document *openapi3.T) {
	for _, hook := range document.Webhooks {
		for _, media := range hook.Post.RequestBody.Value.Content {
			closeSchema(media.Schema)
		}
	}
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, response := range operation.Responses.Map() {
				for _, media := range response.Value.Content {
					closeSchema(media.Schema)
				}
			}
		}
	}
}

func closeSchema(reference *openapi3.SchemaRef) {
	if reference == nil || reference.Value == nil {
		return
	}
	schema := reference.Value
	if len(schema.Properties) > 0 && schema.AdditionalProperties.Has == nil {
		schema.WithoutAdditionalProperties()
	}
	for _, property := range schema.Properties {
		closeSchema(property)
	}
	for _, branch := range schema.AnyOf {
		closeSchema(branch)
	}
	closeSchema(schema.Items)
}

// ErrUndocumented is returned for a method and path that the document lacks.
var ErrUndocumented = errors.New("not in openapi.yaml")

// find returns the route of a request. The workflow operations are also served without the
// version segment, and documented once.
func (c *Contract) find(
	request *http.Request,
) (*openapi3filter.RequestValidationInput, bodies, error) {
	versioned, by := request.Clone(request.Context()), c.partners
	below, ok := strings.CutPrefix(request.URL.String(), c.base+"/")
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", request.URL, ErrUndocumented)
	}
	switch {
	case strings.HasPrefix(below, "lender/"):
		by = c.lenders
	case !strings.HasPrefix(below, "v2/"):
		below = "v2/" + below
	}
	var err error
	if versioned.URL, err = request.URL.Parse(anywhere + "/" + below); err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", request.URL, err)
	}
	route, parameters, err := by.router.FindRoute(versioned)
	// The router ignores a trailing slash, which makes a different address.
	if err != nil || strings.HasSuffix(versioned.URL.Path, "/") {
		return nil, nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, ErrUndocumented)
	}
	// Parameters and headers are plain values; for a document of the previous OpenAPI version
	// the library does not compile schemas for them.
	plain, former := *route, *route.Spec
	plain.Spec, former.OpenAPI = &former, "3.0.3"
	return &openapi3filter.RequestValidationInput{
		Request: versioned, PathParams: parameters, Route: &plain,
		Options: &openapi3filter.Options{
			IncludeResponseStatus:             true,
			RejectWhenRequestBodyNotSpecified: true,
			MultiError:                        true,
			AuthenticationFunc:                openapi3filter.NoopAuthenticationFunc,
		},
	}, by.bodies, nil
}

// CheckRequest returns how a request differs from the document. body is what was sent. A
// request without credentials differs too.
func (c *Contract) CheckRequest(request *http.Request, body []byte) error {
	input, bodies, err := c.find(request)
	if err != nil {
		return err
	}
	for _, name := range []string{"x-service-client-id", "x-service-client-secret"} {
		if request.Header.Get(name) == "" {
			return fmt.Errorf("%s %s: no %s", request.Method, request.URL.Path, name)
		}
	}
	input.Request.Body = io.NopCloser(bytes.NewReader(body))
	input.Request.ContentLength = int64(len(body))
	var schema *openapi3.Schema
	if wanted := input.Route.Operation.RequestBody; wanted != nil && len(body) > 0 {
		schema = jsonSchema(wanted.Value.Content, request.Header.Get("Content-Type"))
	}
	input.Options.ExcludeRequestBody = schema != nil
	err = openapi3filter.ValidateRequest(request.Context(), input)
	if err == nil && schema != nil {
		err = bodies.check(schema, body)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, err)
	}
	return nil
}

// CheckResponse returns how an answer differs from the document: its status, headers and
// body. An answer at an undocumented address, such as 404 or 405, must be the error
// envelope.
func (c *Contract) CheckResponse(
	request *http.Request, response *http.Response, body []byte,
) error {
	input, bodies, err := c.find(request)
	if errors.Is(err, ErrUndocumented) || response.StatusCode == http.StatusMethodNotAllowed {
		if response.Header.Get("X-Request-Id") == "" {
			return errors.New("no X-Request-Id")
		}
		refusal := c.Document.Components.Schemas["ErrorEnvelope"].Value
		if err := c.partners.bodies.check(refusal, body); err != nil {
			return fmt.Errorf("not an ErrorEnvelope: %w", err)
		}
		return checkStatusCode(response.StatusCode, body)
	}
	if err != nil {
		return err
	}
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: response.StatusCode, Header: response.Header,
		Options: input.Options,
	}
	answer.SetBodyBytes(body)
	var schema *openapi3.Schema
	documented := input.Route.Operation.Responses.Status(response.StatusCode)
	if documented != nil && request.Method != http.MethodHead {
		schema = jsonSchema(documented.Value.Content, response.Header.Get("Content-Type"))
	}
	input.Options.ExcludeResponseBody = schema != nil
	err = openapi3filter.ValidateResponse(request.Context(), answer)
	if err == nil && schema != nil {
		err = bodies.check(schema, body)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s %s answered %d: %w",
			request.Method, request.URL.Path, response.StatusCode, err)
	case schema == nil:
		return nil // a file has no envelope
	}
	return checkStatusCode(response.StatusCode, body)
}

// checkStatusCode compares the envelope's status with the real one.
func checkStatusCode(status int, body []byte) error {
	var envelope struct {
		StatusCode int `json:"statusCode"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("reading the envelope: %w", err)
	}
	if envelope.StatusCode != status {
		return fmt.Errorf("the envelope says %d, the answer %d", envelope.StatusCode, status)
	}
	return nil
}

// CheckEvent returns how a webhook body differs from the schema of its kind.
func (c *Contract) CheckEvent(kind string, body []byte) error {
	hook := c.Document.Webhooks[kind]
	if hook == nil {
		return fmt.Errorf("%s: %w", kind, ErrUndocumented)
	}
	media := hook.Post.RequestBody.Value.Content[jsonType]
	if err := c.partners.bodies.check(media.Schema.Value, body); err != nil {
		return fmt.Errorf("not a %s event: %w", kind, err)
	}
	return nil
}
