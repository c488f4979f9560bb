//go:build gates

// Package gates checks the published documents with third-party tools against the running
// program. `make gates` fetches the tools according to their lock files and runs these tests.
package gates

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/lending"
	"drawbridge/internal/waittest"
	"drawbridge/web/docs"
)

func TestMain(m *testing.M) { os.Exit(e2etest.Main(m, 2)) }

// documents are the OpenAPI documents and the paths that serve them.
var documents = map[string]string{"partner": "/openapi.yaml", "lender": "/lender/openapi.yaml"}

// testServer is a server with the demo data.
type testServer struct {
	*testing.T
	*e2etest.Harness
	server *e2etest.Server
	data   e2etest.Demo
	root   string
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	w := e2etest.New(t)
	s := &testServer{T: t, Harness: w, root: root, data: w.DemoData()}
	s.server = w.Serve()
	return s
}

// npm prepares a command of a tool from the lock file, to run in the folder of the test.
func (s *testServer) npm(name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(s.Context(), filepath.Join(s.root, "tools/node_modules/.bin", name),
		args...)
	command.Dir = s.Folder
	command.Env = append(os.Environ(), "NO_COLOR=1", "REDOCLY_TELEMETRY=off",
		"REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	return command
}

// must runs a command and returns its output; if it fails, so does the test.
func (s *testServer) must(command *exec.Cmd) string {
	s.Helper()
	said, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", filepath.Base(command.Path), err, said)
	}
	return string(said)
}

// fetch stores a file of the documentation in the test's folder.
func (s *testServer) fetch(path, name string) string {
	s.Helper()
	answer, err := http.Get(s.server.URL + docs.Prefix + path)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("%s answered %d: %v", path, answer.StatusCode, err)
	}
	return s.write(name, body)
}

func (s *testServer) write(name string, body []byte) string {
	s.Helper()
	path := filepath.Join(s.Folder, name)
	if err := os.WriteFile(path, body, 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func TestLinters(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	rules := s.write("spectral.yaml", []byte("extends: spectral:oas\n"))
	var files []string
	for name, path := range documents {
		files = append(files, s.fetch(path, name+".yaml"))
	}
	s.must(s.npm("redocly", append([]string{"lint", "--extends=recommended-strict"}, files...)...))
	s.must(s.npm("spectral",
		append([]string{"lint", "--fail-severity=hint", "--ruleset=" + rules}, files...)...))
}

// Code generated from the documents compiles, in Go and in strict TypeScript.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	tool := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = filepath.Join(s.root, "tools")
		return command
	}
	check := []string{"--strict", "--noEmit", "--skipLibCheck", "false"}
	for name, path := range documents {
		file := s.fetch(path, name+".yaml")
		folder := filepath.Join(s.root, "tools", "_generated", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		s.must(tool("tool", "oapi-codegen", "-generate", "types,client",
			"-package", name, "-o", filepath.Join(folder, "client.go"), file))
		types := filepath.Join(s.Folder, name+".ts")
		s.must(s.npm("openapi-typescript", file, "-o", types))
		check = append(check, types)
	}
	s.must(tool("vet", "./_generated/partner", "./_generated/lender"))
	s.must(s.npm("tsc", check...))
}

// collection runs requests of the collection against an address with the demo's first client and
// returns the output of newman.
func (s *testServer) collection(file, base string) string {
	s.Helper()
	client := s.data.Partners[0].Clients[0]
	s.write("certificate.pdf", []byte("%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n%%EOF\n"))
	return s.must(s.npm("newman", "run", file, "--working-dir", s.Folder, "--bail",
		"--env-var", "client_id="+client.ID, "--env-var", "client_secret="+client.Secret,
		"--env-var", "base_url="+base, "--timeout-request", "10000"))
}

// The request collection runs from top to bottom, and every request of it is sent.
func TestCollection(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	s.failOnce()
	said := s.collection(s.fetch("/collection.json", "collection.json"), s.server.URL+"/api")
	for _, unsent := range []string{"resend", "recoveries", "faults", "request-draw"} {
		if !strings.Contains(said, unsent) {
			t.Errorf("nothing was sent to %s:\n%s", unsent, said)
		}
	}
}

// failOnce gives the first partner a subscription with a delivery that has used up its attempts.
func (s *testServer) failOnce() {
	s.Helper()
	down := httptest.NewServer(http.NotFoundHandler())
	s.Cleanup(down.Close)
	s.Subscribe(s.data, down.URL)
	e2etest.WantDraw(s.T, s.server.URL, s.data, "first_regular")
	var known struct {
		Deliveries []struct {
			UID string `json:"delivery_uid"`
		} `json:"deliveries"`
	}
	waittest.Within(s.T, time.Minute, "a delivery failed", func() bool {
		s.JSON(&known, "delivery", "list", "--state", "failed")
		return len(known.Deliveries) > 0
	})
}

// A proxy that compares requests and responses with the document reports nothing during the life
// of a loan. The proxy does not support files.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	s.failOnce()
	document := s.fetch("/openapi.yaml", "openapi.yaml")
	port := freePort(t)
	proxy := s.npm("prism", "proxy", document, s.server.URL+"/api", "--errors", "--port", port)
	var said bytes.Buffer
	proxy.Stdout, proxy.Stderr = &said, &said
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = proxy.Process.Kill(), proxy.Wait() })
	waittest.Within(t, 5*time.Minute, "the proxy listens", func() bool {
		connection, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	whole, err := os.ReadFile(s.fetch("/collection.json", "collection.json"))
	if err != nil {
		t.Fatal(err)
	}
	s.collection(s.write("without-files.json", withoutFiles(t, whole)), "http://127.0.0.1:"+port)
	s.life("http://127.0.0.1:" + port)
	_ = proxy.Process.Kill()
	_ = proxy.Wait()
	if strings.Contains(said.String(), "Violation") {
		t.Errorf("the proxy says\n%s", said.String())
	}
}

// life pays a loan out completely through the proxy. The first draw is cancelled, the second one
// is returned, and refusals on the way are as the document says. The draw that completes the loan
// has a form, so it bypasses the proxy.
func (s *testServer) life(proxy string) {
	s.Helper()
	at := slices.IndexFunc(s.data.Products, func(p e2etest.Product) bool { return p.Code == "ROOF-3" })
	opened := e2etest.Send(s.T, s.data, http.MethodPost, proxy+"/v2/sandbox/scenario", map[string]any{
		"name": "approved", "product_uid": s.data.Products[at].UID,
	})
	uid := fmt.Sprint(opened["loan_application_uid"])
	loan := proxy + "/v2/loan/" + uid
	read := func(url string) map[string]any {
		return e2etest.Send(s.T, s.data, http.MethodGet, url, nil)
	}
	move := func(id any, status string) {
		e2etest.Send(s.T, s.data, http.MethodPost,
			fmt.Sprintf("%s/v2/sandbox/disbursement/%v/status", proxy, id), map[string]any{
				"status": status, "reason": "Wrong account", "method": "ach",
			})
	}
	refused := func(method, url, body string, want int) {
		s.Helper()
		if got := e2etest.Call(s.T, s.data, method, url, body); got != want {
			s.Errorf("%s %s answered %d, want %d", method, url, got, want)
		}
	}
	ends := [][]string{
		{"CANCELLED"}, {"FUNDING_PROCESSING", "FUNDING_SETTLED", "RETURNED"},
	}
	for read(loan)["balance"] != "0.00" {
		if read(loan + "/draw-preview")["documents_required"] == true {
			refused(http.MethodPost, loan+"/request-draw", "{}", http.StatusBadRequest)
			past := s.server.URL + "/api/v2/loan/" + uid + "/request-draw"
			if status := e2etest.PostForm(s.T, s.data, past, map[string]string{
				"metadata": `{"projectName":"Roof","completionDate":"2026-01-31"}`,
			}); status != http.StatusOK {
				s.Fatalf("the draw that completes the loan answered %d", status)
			}
		} else {
			e2etest.Send(s.T, s.data, http.MethodPost, loan+"/request-draw", map[string]any{})
		}
		refused(http.MethodPost, loan+"/request-draw", "{}", http.StatusInternalServerError)
		drawn := read(loan)["disbursements"].([]any)
		way := []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"}
		if len(ends) > 0 {
			way, ends = ends[0], ends[1:]
		}
		for _, status := range way {
			move(drawn[len(drawn)-1].(map[string]any)["merchantDisbursementId"], status)
		}
	}
	if paid := len(read(loan)["disbursements"].([]any)); paid != 5 {
		s.Errorf("the loan was paid out by %d draws, want 3 after one cancelled and one returned", paid)
	}
	refused(http.MethodPost, loan+"/request-draw", "{}", http.StatusBadRequest)
	refused(http.MethodGet, proxy+"/v2/loan/"+uuid.NewString(), "", http.StatusNotFound)
	read(proxy + "/v2/application/" + uid)
	read(proxy + "/v2/application/" + uid + "/events?limit=500")
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// withoutFiles removes the requests that have forms from a collection.
func withoutFiles(t *testing.T, whole []byte) []byte {
	t.Helper()
	var collection map[string]any
	if err := json.Unmarshal(whole, &collection); err != nil {
		t.Fatal(err)
	}
	for _, folder := range collection["item"].([]any) {
		var kept []any
		for _, item := range folder.(map[string]any)["item"].([]any) {
			body, _ := item.(map[string]any)["request"].(map[string]any)["body"].(map[string]any)
			if body == nil || body["mode"] != "formdata" {
				kept = append(kept, item)
			}
		}
		folder.(map[string]any)["item"] = kept
	}
	text, err := json.Marshal(collection)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// received is a webhook in the form that the scripts read.
type received struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Every kind of webhook satisfies its published schema, and the library of Standard Webhooks
// verifies it.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-for-standard-webhooks"
	s := newTestServer(t)
	var mu sync.Mutex
	var all []received
	partner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		one := received{Headers: map[string]string{}}
		for name := range r.Header {
			one.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		one.Body = string(body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
	}))
	t.Cleanup(partner.Close)
	kinds := lending.AllEventKinds()
	made := s.Subscribe(s.data, partner.URL,
		"--auth", "hmac", "--secret", secret, "--standard", "--event", "all",
		"--event", "disbursement.funding.cancelled", "--event", "disbursement.funding.returned")
	for _, kind := range kinds {
		file := string(kind) + ".json"
		s.fetch("/schemas/"+file, file)
		var sent map[string]any
		s.JSON(&sent, "subscription", "test", made.UID.String(), "--event", string(kind))
	}
	client := s.data.Partners[0].Clients[0]
	scenario, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.server.URL+"/api/v2/sandbox/scenario", strings.NewReader(`{"name": "returned"}`))
	if err != nil {
		t.Fatal(err)
	}
	scenario.Header = http.Header{
		"Content-Type": {"application/json"}, "x-service-client-id": {client.ID},
		"x-service-client-secret": {client.Secret},
	}
	answer, err := http.DefaultClient.Do(scenario)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("the scenario answered %d", answer.StatusCode)
	}
	waittest.Within(t, time.Minute, "the webhooks came", func() bool {
		mu.Lock()
		defer mu.Unlock()
		returned := 0
		for _, one := range all {
			if one.Headers["x-drawbridge-event"] == "disbursement.funding.returned" {
				returned++
			}
		}
		return returned == 2 && len(all) > len(kinds)
	})
	mu.Lock()
	defer mu.Unlock()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "node", filepath.Join(s.root, "tools/webhooks.mjs"),
		s.write("webhooks.json", text), base64.StdEncoding.EncodeToString([]byte(secret)), s.Folder)
	want := fmt.Sprintf("%d webhooks are as published", len(all))
	if said := s.must(check); !strings.Contains(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
