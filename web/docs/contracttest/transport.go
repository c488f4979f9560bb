package contracttest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Reporter is the part of *testing.T that Transport needs.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Transport checks every exchange below the contract's base address, and reports how it
// differs from the document. Requests are checked only if the server accepted them, since a
// test may send a wrong one to see it refused. Bodies are held in memory, so Transport is
// not for measuring uploads.
func (c *Contract) Transport(t Reporter, next http.RoundTripper) http.RoundTripper {
	return &transport{contract: c, report: t, next: next}
}

type transport struct {
	contract *Contract
	report   Reporter
	next     http.RoundTripper
}

// RoundTrip sends the request and checks both directions.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.report.Helper()
	if !strings.HasPrefix(request.URL.String(), t.contract.base+"/") {
		return t.next.RoundTrip(request)
	}
	var sent []byte
	if request.Body != nil {
		var err error
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, fmt.Errorf("reading the request's body: %w", err)
		}
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer's body: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(received))
	if response.StatusCode < http.StatusBadRequest {
		if err := t.contract.CheckRequest(request, sent); err != nil {
			t.report.Errorf("request departs from openapi.yaml: %v", err)
		}
	}
	if request.Method != http.MethodHead {
		if err := t.contract.CheckResponse(request, response, received); err != nil {
			t.report.Errorf("answer departs from openapi.yaml: %v\n%s", err, received)
		}
	}
	return response, nil
}
