package contracttest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/lending"
	"drawbridge/web/docs"
)

const base = docs.ExampleBaseURL

func load(t *testing.T) *Contract {
	t.Helper()
	contract, err := Load(base)
	if err != nil {
		t.Fatal(err)
	}
	return contract
}

// documents returns the partners' and the lender's documents.
func documents(c *Contract) []*openapi3.T { return []*openapi3.T{c.Document, c.Lender} }

// The operations of specification section 4 and of the sandbox.
func TestEveryOperationIsDocumented(t *testing.T) {
	t.Parallel()
	want := []string{
		"GET /v2/application",
		"GET /v2/application/{uid}",
		"GET /v2/application/{uid}/events",
		"GET /v2/deliveries",
		"GET /v2/deliveries/{delivery_uid}",
		"GET /v2/events",
		"GET /v2/loan/{loanApplicationUid}",
		"GET /v2/loan/{loanApplicationUid}/draw-preview",
		"GET /v2/recoveries/{recovery_uid}",
		"GET /v2/statements",
		"GET /v2/statements/{date}",
		"GET /v2/subscriptions",
		"POST /v2/application",
		"POST /v2/application/create-run-decision",
		"POST /v2/deliveries/{delivery_uid}/resend",
		"POST /v2/loan/{loanApplicationUid}/completion-cert-upload",
		"POST /v2/loan/{loanApplicationUid}/request-draw",
		"POST /v2/recoveries",
		"POST /v2/statements/{date}/compare",
		"DELETE /v2/sandbox/faults/{fault_uid}",
		"GET /v2/sandbox/faults",
		"POST /v2/sandbox/faults",
		"POST /v2/sandbox/scenario",
		"POST /v2/sandbox/application/{uid}/amount",
		"POST /v2/sandbox/application/{uid}/document",
		"POST /v2/sandbox/application/{uid}/status",
		"POST /v2/sandbox/application/{uid}/task",
		"POST /v2/sandbox/application/{uid}/terms",
		"POST /v2/sandbox/disbursement/{merchantDisbursementId}/status",
		"POST /v2/sandbox/task/{task_uid}/status",
		"PUT /v2/application/accept-offer",
		"GET /lender/v1/applications",
		"GET /lender/v1/applications/{uid}",
		"GET /lender/v1/disbursements",
		"GET /lender/v1/disbursements/{merchantDisbursementId}",
		"GET /lender/v1/files/{file_uid}",
		"POST /lender/v1/applications/{uid}/amount",
		"POST /lender/v1/applications/{uid}/document",
		"POST /lender/v1/applications/{uid}/status",
		"POST /lender/v1/applications/{uid}/tasks",
		"POST /lender/v1/applications/{uid}/terms",
		"POST /lender/v1/disbursements/status",
		"POST /lender/v1/disbursements/{merchantDisbursementId}/status",
		"POST /lender/v1/tasks/{task_uid}/status",
	}
	var got []string
	for _, document := range documents(load(t)) {
		for path, item := range document.Paths.Map() {
			for method := range item.Operations() {
				got = append(got, method+" "+path)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryErrorCodeIsDocumentedOnce(t *testing.T) {
	t.Parallel()
	document := load(t).Document
	var want, enumerated, explained []string
	for _, code := range lending.Codes() {
		want = append(want, string(code))
	}
	for _, code := range document.Components.Schemas["ErrorCode"].Value.Enum {
		enumerated = append(enumerated, code.(string))
	}
	for _, entry := range document.Extensions["x-error-codes"].([]any) {
		explained = append(explained, entry.(map[string]any)["code"].(string))
	}
	if diff := cmp.Diff(want, enumerated); diff != "" {
		t.Errorf("the ErrorCode schema: %s", diff)
	}
	if diff := cmp.Diff(want, explained); diff != "" {
		t.Errorf("x-error-codes: %s", diff)
	}
}

// The status of each error code that an operation names is among the operation's responses,
// so that a generated client expects it.
func TestOperationsDocumentTheStatusOfTheirErrors(t *testing.T) {
	t.Parallel()
	document := load(t).Document
	statuses := map[string]string{}
	for _, entry := range document.Extensions["x-error-codes"].([]any) {
		fields := entry.(map[string]any)
		status := strconv.Itoa(int(fields["status"].(float64)))
		statuses[fields["code"].(string)] = status
	}
	for path, item := range paths(load(t)) {
		for method, operation := range item.Operations() {
			codes := operation.Extensions["x-errors"].([]any)
			for _, code := range append(codes, "UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "INTERNAL",
				"UNAVAILABLE") {
				status := statuses[code.(string)]
				if operation.Responses.Value(status) == nil {
					t.Errorf("%s %s: %s is %q, which is not documented", method, path, code, status)
				}
			}
		}
	}
}

func TestExampleRequestsFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	contract := load(t)
	for _, list := range []struct {
		examples func() ([]Example, error)
		document *openapi3.T
	}{
		{contract.Examples, contract.Document}, {contract.LenderExamples, contract.Lender},
	} {
		examples, err := list.examples()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, example := range examples {
			seen[example.Operation] = true
			request, err := example.Request(base)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("x-service-client-id", "id")
			request.Header.Set("x-service-client-secret", "secret")
			if err := contract.CheckRequest(request, example.Body); err != nil {
				t.Errorf("%s %s: %v", example.Operation, example.Name, err)
			}
		}
		if want := countOperations(list.document); len(seen) != want {
			t.Errorf("examples of %d operations, want %d", len(seen), want)
		}
	}
}

func countOperations(document *openapi3.T) int {
	count := 0
	for _, item := range document.Paths.Map() {
		count += len(item.Operations())
	}
	return count
}

// eachAnswer visits every example answer of the document.
func eachAnswer(
	contract *Contract,
	visit func(method, path, status string, media *openapi3.MediaType, body []byte),
) {
	for path, item := range paths(contract) {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content["application/json"]
				if media == nil {
					continue // a file
				}
				for _, example := range media.Examples {
					body, _ := json.Marshal(example.Value.Value)
					visit(method, path, status, media, body)
				}
			}
		}
	}
}

func TestExampleAnswersFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	contract := load(t)
	visited := 0
	eachAnswer(contract, func(
		method, path, status string, _ *openapi3.MediaType, body []byte,
	) {
		visited++
		request := httptest.NewRequest(method, base+exampleAddress(contract, method, path), http.NoBody)
		if err := contract.CheckResponse(request, answer(status), body); err != nil {
			// One example serves several statuses, such as 201 and the status of an existing object.
			t.Errorf("%v\n%s", err, body)
		}
	})
	if visited < 100 {
		t.Errorf("only %d example answers", visited)
	}
}

func exampleAddress(contract *Contract, method, path string) string {
	return fill(path, paths(contract)[path].Operations()[method])
}

// paths returns the paths of both documents.
func paths(contract *Contract) map[string]*openapi3.PathItem {
	all := map[string]*openapi3.PathItem{}
	for _, document := range documents(contract) {
		maps.Copy(all, document.Paths.Map())
	}
	return all
}

// answer returns a response with every header that the document requires.
func answer(status string) *http.Response {
	code, _ := strconv.Atoi(status)
	header := http.Header{}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Request-Id": "r-1", "Retry-After": "1",
		"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "2",
		"X-Drawbridge-Statement-Key":       strings.Repeat("5c1d", 4),
		"X-Drawbridge-Statement-Signature": strings.Repeat("A", 86) + "==",
	} {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: code, Header: header}
}

func TestDriftIsFound(t *testing.T) {
	t.Parallel()
	const loan = "/v2/loan/" + ApplicationUID + "/request-draw"
	const drawn = `{"timestamp":"2026-11-21T09:30:00.123Z","statusCode":200,"result":{"data":{` +
		`"merchantDisbursementId":1,"merchantUid":"` + MerchantUID + `",` +
		`"loanApplicationUid":"` + ApplicationUID + `","grossDisbursedAmount":"1.00",` +
		`"netDisbursedAmount":"1.00","disbursementNumber":1,"amountFunded":"1.00"},"error":null}}`
	cases := []struct {
		name, path, body string
		status           int
		drop             string
		ok               bool
	}{
		{name: "as documented", path: loan, body: drawn, status: 200, ok: true},
		{
			name: "an extra field", path: loan, status: 200,
			body: strings.Replace(drawn, `"amountFunded"`, `"extra":1,"amountFunded"`, 1),
		},
		{
			name: "a missing field", path: loan, status: 200,
			body: strings.Replace(drawn, `"disbursementNumber":1,`, ``, 1),
		},
		{
			name: "an identifier that is none", path: loan, status: 200,
			body: strings.Replace(drawn, MerchantUID, "home", 1),
		},
		{
			name: "a number for an amount", path: loan, status: 200,
			body: strings.Replace(drawn, `"grossDisbursedAmount":"1.00"`,
				`"grossDisbursedAmount":1.00`, 1),
		},
		{
			name: "one decimal", path: loan, status: 200,
			body: strings.Replace(drawn, `"amountFunded":"1.00"`, `"amountFunded":"1.0"`, 1),
		},
		{
			name: "no milliseconds", path: loan, status: 200,
			body: strings.Replace(drawn, `00.123Z`, `00Z`, 1),
		},
		{name: "an undocumented status", path: loan, body: drawn, status: 202},
		{
			name: "another status in the envelope", path: loan, status: 200,
			body: strings.Replace(drawn, `"statusCode":200`, `"statusCode":201`, 1),
		},
		{name: "no request id", path: loan, body: drawn, status: 200, drop: "X-Request-Id"},
		{name: "a 404 that is no envelope", path: "/v2/nowhere", body: `{}`, status: 404},
		{
			name: "an unknown error code", path: "/v2/nowhere", status: 404,
			body: `{"timestamp":"2026-11-21T09:30:00.123Z","statusCode":404,` +
				`"result":{"data":null,"error":{"code":"GONE","message":"x"}}}`,
		},
		{
			name: "a 404 envelope", path: "/v2/nowhere", status: 404, ok: true,
			body: `{"timestamp":"2026-11-21T09:30:00.123Z","statusCode":404,` +
				`"result":{"data":null,"error":{"code":"NOT_FOUND","message":"x"}}}`,
		},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			response := answer(strconv.Itoa(test.status))
			response.Header.Del(test.drop)
			request := httptest.NewRequest(http.MethodPost, base+test.path, http.NoBody)
			err := load(t).CheckResponse(request, response, []byte(test.body))
			if (err == nil) != test.ok {
				t.Errorf("ok = %v, want %v: %v", err == nil, test.ok, err)
			}
		})
	}
}

func TestEventsFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	contract := load(t)
	kinds := slices.Sorted(maps.Keys(contract.Document.Webhooks))
	if len(kinds) != 11 {
		t.Fatalf("%d kinds of events, want 11: %v", len(kinds), kinds)
	}
	for _, kind := range kinds {
		media := contract.Document.Webhooks[kind].Post.RequestBody.Value.
			Content["application/json"]
		for name, example := range media.Examples {
			fields := maps.Clone(example.Value.Value.(map[string]any))
			body, _ := json.Marshal(fields)
			if err := contract.CheckEvent(kind, body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			fields["event"] = kind
			extra, _ := json.Marshal(fields)
			if contract.CheckEvent(kind, extra) == nil {
				t.Errorf("%s: an extra field passes", kind)
			}
			delete(fields, "event")
			delete(fields, "timestamp")
			less, _ := json.Marshal(fields)
			if contract.CheckEvent(kind, less) == nil {
				t.Errorf("%s: a missing field passes", kind)
			}
		}
	}
}

// complaints collects what Transport reports.
type complaints struct{ list []string }

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, _ ...any) { c.list = append(c.list, format) }

func TestTransportChecksBothDirections(t *testing.T) {
	t.Parallel()
	var echoed []byte
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			echoed, _ = io.ReadAll(r.Body)
			maps.Copy(w.Header(), answer("200").Header)
			_, _ = io.WriteString(w, `{"timestamp":"2026-11-21T09:31:12.480Z","statusCode":200,`+
				`"result":{"data":{"thrive_application_uid":"`+ApplicationUID+`",`+
				`"offer_selected":true},"error":null}}`)
		}))
	t.Cleanup(server.Close)
	contract, err := Load(server.URL + "/api")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, path, body string
		want             int
	}{
		{"fine", "/api/v2/application/accept-offer", `{"thrive_application_uid":"` +
			ApplicationUID + `","selected_product_uid":"` + ProductUID + `"}`, 0},
		{
			"accepted without a required field", "/api/v2/application/accept-offer",
			`{"thrive_application_uid":"` + ApplicationUID + `"}`, 1,
		},
		{"another operation's answer", "/api/application", `{"requested_amount":"1.00",` +
			`"borrower":{"first_name":"A","last_name":"B","email":"a@example.com"},` +
			`"project":{"name":"P"}}`, 1},
		{"outside the API", "/healthz", `{}`, 0},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			found := &complaints{}
			client := &http.Client{Transport: contract.Transport(found, http.DefaultTransport)}
			method := http.MethodPut
			if strings.HasSuffix(test.path, "/application") {
				method = http.MethodPost
			}
			request, _ := http.NewRequest(method, server.URL+test.path, strings.NewReader(test.body))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("x-service-client-id", "id")
			request.Header.Set("x-service-client-secret", "secret")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if len(found.list) != test.want {
				t.Errorf("complaints %q, want %d", found.list, test.want)
			}
			if string(echoed) != test.body || !bytes.Contains(body, []byte("offer_selected")) {
				t.Errorf("sent %q, received %q: not passed through", echoed, body)
			}
		})
	}
}

func TestReplaceReachesPathAndBody(t *testing.T) {
	t.Parallel()
	identifiers := map[string]string{
		ApplicationUID: "11111111-1111-4111-8111-111111111111", DisbursementID: "7",
	}
	example := Example{
		Path: "/v2/sandbox/disbursement/1042/status",
		Body: []byte(`{"a":"` + ApplicationUID + `","ref":"CRM-10442"}`),
	}.Replace(identifiers)
	if example.Path != "/v2/sandbox/disbursement/7/status" {
		t.Errorf("path %s", example.Path)
	}
	want := `{"a":"11111111-1111-4111-8111-111111111111","ref":"CRM-10442"}`
	if string(example.Body) != want {
		t.Errorf("body %s", example.Body)
	}
}
