package web_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/webhook/sender"
)

// TestDocumentedLengthsHold sends each text of a new application with the documented
// maximum length, and one character longer.
func TestDocumentedLengthsHold(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	schema := s.Contract.Document.Components.Schemas["ApplicationRequest"].Value
	tried := 0
	for _, part := range []string{"", "borrower", "project"} {
		fields := schema.Properties
		if part != "" {
			fields = fields[part].Value.Properties
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			field := fields[name].Value
			if field.Pattern != "" || field.Format == "uuid" || !field.Type.Is("string") {
				continue
			}
			if field.MaxLength == nil {
				t.Errorf("%s %s has no greatest length", part, name)
				continue
			}
			tried++
			for longer, status := range []int{http.StatusCreated, http.StatusBadRequest} {
				answer := create(s, part, name, textOf(field, int(*field.MaxLength)+longer))
				if answer.Status != status {
					t.Errorf("%s %s longer by %d: %s", part, name, longer, answer.Raw)
				}
			}
		}
	}
	if tried != 8 {
		t.Errorf("%d texts were tried", tried)
	}
	for field, status := range map[string]int{
		"description": http.StatusCreated, "address": http.StatusCreated, "name": http.StatusBadRequest,
	} {
		if answer := create(s, "project", field, "two\r\n\tlines"); answer.Status != status {
			t.Errorf("two lines of %s: %s", field, answer.Raw)
		}
	}
	if answer := create(s, "project", "description", "a\abell"); answer.Status != 400 {
		t.Errorf("a control character: %s", answer.Raw)
	}
}

func textOf(field *openapi3.Schema, length int) string {
	if field.Format == "email" {
		const end = "@example.com"
		labels := strings.Repeat("x.", (length-len(end))/2-1)
		return strings.Repeat("x", length-len(end)-len(labels)) + "@" + labels + end[1:]
	}
	return strings.Repeat("ü", length)
}

// create creates an application with one field of a part, or of the whole, replaced.
func create(s *apptest.Server, part, name string, value any) apptest.Answer {
	s.T.Helper()
	body := apptest.Borrow()
	within := body
	if part != "" {
		within = maps.Clone(body[part].(map[string]any))
		body[part] = within
	}
	within[name] = value
	return s.Do(apptest.Call{Method: http.MethodPost, Path: "/v2/application", JSON: body})
}

// TestDocumentedNumbersHold sends the documented bounds of numbers and lists, and a little more.
func TestDocumentedNumbersHold(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for value, status := range map[string]int{
		"999999999999.99": 201, "1000000000000": 400, "0": 400, "1.001": 400,
	} {
		if answer := create(s, "", "requested_amount", value); answer.Status != status {
			t.Errorf("requesting %s: %s", value, answer.Raw)
		}
	}
	for value, status := range map[string]int{"0": 201, "999999999999.99": 201, "1000000000000": 400} {
		if answer := create(s, "borrower", "annual_income", value); answer.Status != status {
			t.Errorf("earning %s: %s", value, answer.Raw)
		}
	}
	terms := "/v2/sandbox/application/" + s.Loan("P404020").String() + "/terms"
	for _, test := range []struct {
		field, value string
		status       int
	}{
		{"term", "1", 200},
		{"term", "600", 200},
		{"term", "0", 400},
		{"term", "601", 400},
		{"interest_rate", "0", 200},
		{"interest_rate", "100", 200},
		{"interest_rate", "7.1234", 200},
		{"interest_rate", "7.12345", 400},
		{"interest_rate", "100.0001", 400},
		{"merchant_fee_percentage", "100.0001", 400},
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodPost, Path: terms, JSON: map[string]string{test.field: test.value},
		})
		if answer.Status != test.status {
			t.Errorf("%s %s: %s", test.field, test.value, answer.Raw)
		}
	}
	// Within the bound each linked application is looked up and not found. The bound counts
	// distinct ones, which a schema cannot express.
	for more, code := range []string{"APPLICATION_NOT_FOUND", "VALIDATION_ERROR"} {
		linked := make([]uuid.UUID, 100+more)
		for i := range linked {
			linked[i] = uuid.New()
		}
		if answer := s.Accept(s.Offered(), "P404020", linked...); answer.Code() != code {
			t.Errorf("%d linked applications: %s", len(linked), answer.Raw)
		}
	}
}

// TestErrorClassesAreDocumented compares the document with the error classes of attempts.
func TestErrorClassesAreDocumented(t *testing.T) {
	t.Parallel()
	want := []any{}
	for _, class := range sender.ErrorClasses() {
		want = append(want, string(class))
	}
	document := apptest.NewServer(t).Contract.Document
	schema := document.Components.Schemas["ErrorClass"].Value
	if diff := cmp.Diff(append(want, nil), schema.Enum); diff != "" {
		t.Errorf("error_class (-code +document):\n%s", diff)
	}
	for _, class := range want {
		if !strings.Contains(schema.Description, "`"+class.(string)+"`") {
			t.Errorf("%s is not explained", class)
		}
	}
}
