package service

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"drawbridge/cmd/e2e/e2etest"
)

// newCollector accepts traces as an OpenTelemetry collector does.
func newCollector(t *testing.T) (string, <-chan *tracepb.Span) {
	t.Helper()
	spans := make(chan *tracepb.Span, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var export collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("the collector was sent %s: %v", r.URL.Path, err)
		}
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					spans <- span
				}
			}
		}
		w.Header().Set("content-type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL, spans
}

// waitForSpans returns the first span of each name.
func waitForSpans(
	t *testing.T, spans <-chan *tracepb.Span, names ...string,
) map[string]*tracepb.Span {
	t.Helper()
	found := map[string]*tracepb.Span{}
	var other []string
	timeout := time.After(2 * time.Minute)
	for len(found) < len(names) {
		select {
		case span := <-spans:
			if name := span.GetName(); slices.Contains(names, name) && found[name] == nil {
				found[name] = span
			} else {
				other = append(other, name)
			}
		case <-timeout:
			t.Fatalf("of the spans %q only %d came, and %q", names, len(found), other)
		}
	}
	return found
}

// TestTraceLeadsFromTheCallToTheEndpoint follows one draw over the queue.
func TestTraceLeadsFromTheCallToTheEndpoint(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	url, spans := newCollector(t)
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_OTLP_URL"] = url
	w.Env["DRAWBRIDGE_WEBHOOK_TRACEPARENT"] = "true"
	w.Env["OTEL_BSP_SCHEDULE_DELAY"] = "50"
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL, "--auth", "hmac")
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	request := e.Next(t)
	const draws, attempts = "POST /api/v2/loan/:uid/request-draw", "webhook attempt"
	found := waitForSpans(t, spans, draws, attempts)
	call, attempt := found[draws], found[attempts]
	if !bytes.Equal(call.GetTraceId(), attempt.GetTraceId()) ||
		!bytes.Equal(call.GetSpanId(), attempt.GetParentSpanId()) {
		t.Errorf("the attempt %v is not part of the call %v", attempt, call)
	}
	sent, _ := request.Value("traceparent")
	want := fmt.Sprintf("00-%x-%x", attempt.GetTraceId(), attempt.GetSpanId())
	if !strings.HasPrefix(sent, want) {
		t.Errorf("the endpoint was told %q, want %s", sent, want)
	}
	id := hex.EncodeToString(call.GetTraceId())
	if logged := s.Logged(); strings.Count(logged, `"trace_id":"`+id+`"`) < 1 {
		t.Errorf("the log does not name the trace %s", id)
	}
}

// TestEndpointsHearOfNoTraceUnasked: by default endpoints get no trace header.
func TestEndpointsHearOfNoTraceUnasked(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_PPROF_LISTEN"] = "127.0.0.1:0"
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	if sent, found := e.Next(t).Value("traceparent"); found {
		t.Errorf("the endpoint was sent the traceparent %q", sent)
	}
	_, rest, found := strings.Cut(s.Logged(), `"msg":"serving profiles","address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("the log does not name the profiler: %s", s.Logged())
	}
	answer, err := http.Get("http://" + address + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), "goroutine profile") {
		t.Errorf("the profiler answered %d %s: %v", answer.StatusCode, text, err)
	}
	public, err := http.Get(s.URL + "/debug/pprof/")
	if err != nil {
		t.Fatal(err)
	}
	defer public.Body.Close()
	if public.StatusCode != http.StatusNotFound {
		t.Errorf("the public port answers profiles with %d", public.StatusCode)
	}
}

// TestTrustRootsFromTheSettingsFile: a variable that Go reads only from the environment
// also works in the settings file.
func TestTrustRootsFromTheSettingsFile(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	err := os.WriteFile(filepath.Join(w.Folder, ".env"), []byte("SSL_CERT_FILE="+e.CAFile+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
}
