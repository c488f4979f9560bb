package contracttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/labstack/echo/v4"

	"drawbridge/web/docs"
)

// mirror is a server that checks each request against the document and answers with the
// document's own example, so that the printed commands can be executed without a lender.
type mirror struct {
	*httptest.Server
	contract *Contract

	mu     sync.Mutex
	faults []string
	seen   map[string]int
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{seen: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	var err error
	if m.contract, err = Load(m.URL + "/api"); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mirror) answer(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.URL.Scheme, r.URL.Host = "http", r.Host
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = m.contract.CheckRequest(r, body)
	}
	if err != nil {
		m.faults = append(m.faults, err.Error())
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	input, _, _ := m.contract.find(r)
	m.seen[input.Route.Operation.OperationID]++
	for status, response := range input.Route.Operation.Responses.Map() {
		if status[0] != '2' {
			continue
		}
		for _, example := range response.Value.Content["application/json"].Examples {
			text, _ := json.Marshal(example.Value.Value)
			code, _ := strconv.Atoi(status)
			w.Header().Set("Idempotency-Replayed", "true")
			w.WriteHeader(code)
			_, _ = w.Write(text)
			return
		}
	}
}

// run executes a script in its own folder and returns its output.
func run(t *testing.T, script string) string {
	t.Helper()
	command := exec.Command("bash", "-c", script)
	command.Dir = t.TempDir()
	certificate := filepath.Join(command.Dir, "certificate.pdf")
	if err := os.WriteFile(certificate, []byte("%PDF-1.4\n%%EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return string(output)
}

// The quick start is executed exactly as printed: each request conforms to the document,
// and the identifiers of one answer reach the next request.
func TestQuickStartFollowsTheDocument(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	script, err := Script(m.URL+"/api", map[string]string{
		PlaceholderClientID:     "client",
		PlaceholderClientSecret: "secret",
		PlaceholderProductUID:   ProductUID,
	})
	if err != nil {
		t.Fatal(err)
	}
	output := run(t, script)
	if len(m.faults) > 0 {
		t.Errorf("departs from the document: %q", m.faults)
	}
	want := map[string]int{
		"createApplication": 1, "runDecision": 1, "acceptOffer": 1,
		"sandboxApplicationStatus": 1, "getLoan": 2, "previewDraw": 1, "requestDraw": 4,
		"sandboxDisbursementStatus": 6, "listApplicationEvents": 1,
	}
	for operation, times := range want {
		if m.seen[operation] != times {
			t.Errorf("%s was called %d times, want %d", operation, m.seen[operation], times)
		}
	}
	steps, err := docs.QuickStart(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		mark := stepMark + step.ID + "\n"
		if !strings.Contains(output, mark) {
			t.Errorf("step %s did not begin", step.ID)
		}
	}
}

// Every command of the reference works when it is pasted.
func TestReferenceCommandsFollowTheDocument(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	page := fetch(t, m.URL+"/api", "/docs/reference")
	script := "set -eu\nCLIENT_ID=client\nCLIENT_SECRET=secret\n"
	commands := 0
	page.Find(".operation-code code").Each(func(_ int, code *goquery.Selection) {
		if text := code.Text(); strings.HasPrefix(text, "curl") {
			commands++
			script += strings.Replace(text, "curl ", "curl -sS --fail-with-body ", 1) + "\n"
		}
	})
	run(t, script)
	if len(m.faults) > 0 {
		t.Errorf("departs from the document: %q", m.faults)
	}
	examples, err := m.contract.Examples()
	if err != nil {
		t.Fatal(err)
	}
	if commands != len(examples) {
		t.Errorf("%d commands for %d examples", commands, len(examples))
	}
	if want := countOperations(m.contract.Document); len(m.seen) != want {
		t.Errorf("commands reach %d operations, want %d: %v", len(m.seen), want, m.seen)
	}
}

// fetch renders a page of a site for base.
func fetch(t *testing.T, base, path string) *goquery.Document {
	t.Helper()
	page, err := goquery.NewDocumentFromReader(bytes.NewReader(get(t, base, path)))
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func get(t *testing.T, base, path string) []byte {
	t.Helper()
	server := echo.New()
	site := docs.New(docs.Options{BaseURL: func() string { return base }})
	for _, route := range site.Routes() {
		server.GET(route.Path, route.Handler)
	}
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s answered %d", path, recorder.Code)
	}
	return recorder.Body.Bytes()
}

// exported holds the part of a Postman collection that is needed to send it.
type exported struct {
	Item []struct{ Item []exportedItem }
}

type exportedItem struct {
	Name    string
	Request struct {
		Method string
		Header []struct {
			Key, Value string
			Disabled   bool
		}
		URL struct {
			Path     []string
			Variable []struct{ Key, Value string }
		}
		Body *struct {
			Mode, Raw string
			FormData  []struct{ Key, Type, Value, Src string }
		}
	}
}

// remembered replaces the variables that earlier requests would have set.
var remembered = strings.NewReplacer(
	"{{disbursement_id}}", "1042", "{{yesterday}}", "2026-11-21T09:30:00Z",
	"{{application_uid}}", someUID, "{{product_uid}}", someUID, "{{task_uid}}", someUID,
	"{{subscription_uid}}", someUID, "{{delivery_uid}}", someUID, "{{recovery_uid}}", someUID,
	"{{fault_uid}}", someUID, "{{statement_date}}", StatementDate,
)

const someUID = "0b8f6c1e-5a1d-4c39-9a0e-3f6f0d7c2a11"

// request returns what a client that imported the collection would send.
func (item exportedItem) request(t *testing.T) (*http.Request, []byte) {
	t.Helper()
	example := Example{Method: item.Request.Method}
	example.Path = "/" + strings.Join(item.Request.URL.Path, "/")
	for _, variable := range item.Request.URL.Variable {
		value := remembered.Replace(variable.Value)
		example.Path = strings.Replace(example.Path, ":"+variable.Key, value, 1)
	}
	fields := map[string]any{}
	if body := item.Request.Body; body != nil && body.Mode == "raw" {
		example.Body, example.ContentType = []byte(remembered.Replace(body.Raw)), "application/json"
	} else if body != nil {
		for _, part := range body.FormData {
			fields[part.Key] = part.Value
			if part.Type == "file" {
				fields[part.Key] = []any{"%PDF-1.4"}
			}
		}
	}
	if len(fields) > 0 {
		if err := example.writeForm(fields); err != nil {
			t.Fatal(err)
		}
	}
	request, err := example.Request(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range item.Request.Header {
		if !header.Disabled && header.Key != "Content-Type" {
			request.Header.Set(header.Key, header.Value)
		}
	}
	return request, example.Body
}

// Every request of the downloaded collection conforms to the document; no operation is missing.
func TestCollectionFollowsTheDocument(t *testing.T) {
	t.Parallel()
	contract := load(t)
	var collection exported
	if err := json.Unmarshal(get(t, base, "/docs/collection.json"), &collection); err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, folder := range collection.Item {
		for _, item := range folder.Item {
			request, body := item.request(t)
			called[item.Request.Method+" "+strings.Join(item.Request.URL.Path, "/")] = true
			if err := contract.CheckRequest(request, body); err != nil {
				t.Errorf("%s: %v", item.Name, err)
			}
		}
	}
	parameters := strings.NewReplacer("{", ":", "}", "")
	for path, item := range contract.Document.Paths.Map() {
		for method := range item.Operations() {
			if !called[method+parameters.Replace(" "+strings.TrimPrefix(path, "/"))] {
				t.Errorf("the collection lacks %s %s", method, path)
			}
		}
	}
}
