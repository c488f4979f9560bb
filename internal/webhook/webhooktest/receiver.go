package webhooktest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"drawbridge/internal/lending"
)

// Received is a request as it came in.
type Received struct {
	Header http.Header
	Body   string
}

// Receiver is an endpoint of a partner.
type Receiver struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []Received
}

// NewReceiver starts an endpoint. answer, which may be nil for 200, writes the answer to
// the n-th request, counted from 1.
func NewReceiver(t testing.TB, answer func(w http.ResponseWriter, n int)) *Receiver {
	t.Helper()
	r := new(Receiver)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("reading a delivery: %v", err)
		}
		r.mu.Lock()
		r.reqs = append(r.reqs, Received{q.Header, string(body)})
		n := len(r.reqs)
		r.mu.Unlock()
		if answer != nil {
			answer(w, n)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// Answering answers with these statuses in turn, repeating the last.
func Answering(statuses ...int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) {
		w.WriteHeader(statuses[min(n, len(statuses))-1])
	}
}

// Requests returns what was received so far.
func (r *Receiver) Requests() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reqs)
}

// WantRefusal fails the test unless err has the code and names the fields.
func WantRefusal(t testing.TB, err error, code lending.Code, fields ...string) {
	t.Helper()
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != code {
		t.Errorf("error %v, want %s", err, code)
		return
	}
	var named []string
	for _, fault := range refusal.Details {
		named = append(named, fault.Field)
	}
	if fmt.Sprint(named) != fmt.Sprint(fields) && len(named)+len(fields) > 0 {
		t.Errorf("%q names %q, want %q", refusal.Message, named, fields)
	}
}
