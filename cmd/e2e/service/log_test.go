package service

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// logLine has the fields of a log line that tests use.
type logLine struct {
	Message   string `json:"msg"`
	RequestID string `json:"request_id"`
	TraceID   string `json:"trace_id"`
	Route     string `json:"route"`
	Client    string `json:"client"`
	Delivery  string `json:"delivery"`
	Attempt   int    `json:"attempt"`
	Status    int    `json:"status"`
	// Took is nil if a line has no duration.
	Took *float64 `json:"duration_ms"`
}

// TestLogJoinsCallAndAttemptAndNamesNobody: the lines of a request and of the attempt that it
// caused have one trace id, although no collector accepts traces, and no line contains a borrower
// or a secret.
func TestLogJoinsCallAndAttemptAndNamesNobody(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL, "--auth", "hmac")
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
	e2etest.WaitForMails(t, w.Open(t))
	if status := s.Stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
	var calls, attempts []logLine
	for text := range strings.Lines(s.Logged()) {
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("the log has a line that is no JSON: %v: %s", err, text)
		}
		switch {
		case line.Message == "request" && strings.HasSuffix(line.Route, "/request-draw"):
			calls = append(calls, line)
		case line.Message == "webhook attempt" && line.Delivery == uid:
			attempts = append(attempts, line)
		}
	}
	if len(calls) != 1 || len(attempts) != 1 {
		t.Fatalf("there are %d lines of the call and %d of the attempt: %s",
			len(calls), len(attempts), s.Logged())
	}
	call, attempt := calls[0], attempts[0]
	if call.RequestID == "" || call.TraceID == "" || call.Status != http.StatusOK ||
		call.Took == nil || call.Client != data.Partners[0].Clients[0].ID {
		t.Errorf("the call's line is %+v", call)
	}
	if attempt.TraceID != call.TraceID || attempt.Attempt != 1 || attempt.Took == nil ||
		attempt.Status != http.StatusNoContent {
		t.Errorf("the attempt's line is %+v, its call is of trace %s", attempt, call.TraceID)
	}
	var hidden []string
	err := w.Open(t).SelectContext(t.Context(), &hidden, `
		SELECT DISTINCT value
		  FROM applications, unnest(ARRAY[borrower_email, borrower_last_name, borrower_phone,
		                                  project_address]) AS value
		 WHERE value <> ''`)
	if err != nil || len(hidden) < 2 {
		t.Fatalf("of borrowers only %v is known (%v)", hidden, err)
	}
	for _, value := range append(hidden, data.Partners[0].Clients[0].Secret) {
		if strings.Contains(s.Logged(), value) {
			t.Errorf("the log tells %q", value)
		}
	}
}
