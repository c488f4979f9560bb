package contracttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// The identifiers in the document's examples. Replace them by real ones with
// Example.Replace before sending.
const (
	ApplicationUID = "0b8f6c1e-5a1d-4c39-9a0e-3f6f0d7c2a11"
	SiblingUID     = "91e0c4a7-6d2b-4b18-8f3d-1a7e5c90bb32"
	MerchantUID    = "2f7b9d10-64c3-4a52-8d1e-7b50e3a9c644"
	ProductUID     = "4c1f0d52-8e0b-4f5e-b7a5-0c6a8b9d3e21"
	TaskUID        = "a7d94e13-2b60-4c8f-9e75-5d1c3f0b8a26"
	DisbursementID = "1042"

	SubscriptionUID = "5b2c9f0e-7d14-4a86-9c3b-6e1f8a0d2c57"
	DeliveryUID     = "0199f2c4-61aa-7b02-9d3c-4f5e6a7b8c91"
	RecoveryUID     = "0199f2d1-5e77-7a21-b0c4-9d8e7f6a5b43"
	FaultUID        = "0199f2e4-8c31-7a52-9b6d-2e1f0a9b8c7d"
	// RecoverySince is the start of an example recovery.
	RecoverySince = "2026-11-21T09:30:00Z"
	// StatementDate is the day of an example statement.
	StatementDate = "2026-11-20"
)

// Example is one example request of the document.
type Example struct {
	// Operation is the operationId, Name the example's name, "default" for an
	// operation without a body.
	Operation, Name string
	Method          string
	// Path begins with /v2 and carries the example query.
	Path        string
	ContentType string
	// Body is nil for none.
	Body []byte
	// Expect is the documented status.
	Expect int
	// Needs names the state that the example acts on, in the words below. The amounts fit a
	// loan of 25000.00 over 40/40/20 at a fee of 3.75 % in which every earlier draw is
	// settled.
	//
	//	application.new          created, not decided
	//	application.offered      decided, at least one offer
	//	application.sibling      another application of the merchant, not closed
	//	application.approved     Approved
	//	loan.first               open, nothing drawn
	//	loan.middle              first of three stages drawn and settled
	//	loan.final               two of three stages drawn and settled
	//	task.pending             a pending task
	//	disbursement.requested   in FUNDING_REQUESTED
	//	disbursement.processing  in FUNDING_PROCESSING
	//	statement                of a business day that has begun
	Needs string
}

// Replace returns the example with identifiers replaced; the keys are the old values.
func (e Example) Replace(identifiers map[string]string) Example {
	for old, value := range identifiers {
		if old == DisbursementID {
			e.Path = strings.TrimSuffix(
				strings.ReplaceAll(e.Path+"/", "/"+old+"/", "/"+value+"/"), "/")
			continue // the number could be part of something else
		}
		e.Path = strings.ReplaceAll(e.Path, old, value)
		e.Body = bytes.ReplaceAll(e.Body, []byte(old), []byte(value))
	}
	return e
}

// Request returns the HTTP request for a server at base, without credentials.
func (e Example) Request(base string) (*http.Request, error) {
	// The caller replaces the context.
	request, err := http.NewRequestWithContext(
		context.Background(), e.Method, base+e.Path, bytes.NewReader(e.Body))
	if err != nil {
		return nil, fmt.Errorf("making the example %s %s: %w", e.Operation, e.Name, err)
	}
	if e.ContentType != "" {
		request.Header.Set("Content-Type", e.ContentType)
	}
	return request, nil
}

// Examples lists every example request of partners, ordered by path, method and name.
func (c *Contract) Examples() ([]Example, error) { return examplesIn(c.Document) }

// LenderExamples lists every example request of the lender's own systems in the same order.
func (c *Contract) LenderExamples() ([]Example, error) { return examplesIn(c.Lender) }

func examplesIn(document *openapi3.T) ([]Example, error) {
	var list []Example
	paths := document.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			found, err := examplesOf(method, path, operations[method])
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		}
	}
	return list, nil
}

func examplesOf(method, path string, operation *openapi3.Operation) ([]Example, error) {
	plain := Example{
		Operation: operation.OperationID, Name: "default", Method: method,
		Path: fill(path, operation), Expect: http.StatusOK,
	}
	plain.read(operation.Extensions)
	if operation.RequestBody == nil {
		return []Example{plain}, nil
	}
	var list []Example
	for mediaType, media := range operation.RequestBody.Value.Content {
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			source := media.Examples[name].Value
			made := plain
			made.Name = name
			made.read(source.Extensions)
			if err := made.write(mediaType, source.Value); err != nil {
				return nil, fmt.Errorf("writing the example %s %s: %w", made.Operation, name, err)
			}
			list = append(list, made)
		}
	}
	return list, nil
}

// read reads the extensions of an operation or an example.
func (e *Example) read(extensions map[string]any) {
	e.Needs, _ = extensions["x-needs"].(string)
	if expect, ok := extensions["x-expect"].(float64); ok {
		e.Expect = int(expect)
	}
}

// fill inserts the example parameters into the path and the query.
func fill(path string, operation *openapi3.Operation) string {
	query := url.Values{}
	for _, reference := range operation.Parameters {
		parameter := reference.Value
		if parameter.Example == nil {
			continue
		}
		switch parameter.In {
		case openapi3.ParameterInPath:
			value := url.PathEscape(fmt.Sprint(parameter.Example))
			path = strings.ReplaceAll(path, "{"+parameter.Name+"}", value)
		case openapi3.ParameterInQuery:
			query.Set(parameter.Name, fmt.Sprint(parameter.Example))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// write encodes the body. An empty form is no body at all, which is how the document
// requests a draw of a whole stage.
func (e *Example) write(mediaType string, value any) error {
	if mediaType == "multipart/form-data" {
		fields, _ := value.(map[string]any)
		if len(fields) == 0 {
			return nil
		}
		return e.writeForm(fields)
	}
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	e.Body, e.ContentType = body, mediaType
	return nil
}

// writeForm writes multipart parts; an array holds the contents of PDF files.
func (e *Example) writeForm(fields map[string]any) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if files, ok := fields[name].([]any); ok {
			for i, content := range files {
				header := textproto.MIMEHeader{}
				header.Set("Content-Disposition",
					fmt.Sprintf(`form-data; name=%q; filename="certificate-%d.pdf"`, name, i+1))
				header.Set("Content-Type", "application/pdf")
				part, err := form.CreatePart(header)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprint(part, content); err != nil {
					return err
				}
			}
			continue
		}
		if err := form.WriteField(name, fmt.Sprint(fields[name])); err != nil {
			return err
		}
	}
	if err := form.Close(); err != nil {
		return err
	}
	e.Body, e.ContentType = body.Bytes(), form.FormDataContentType()
	return nil
}
