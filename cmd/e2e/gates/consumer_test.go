//go:build gates

package gates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// booked is an event in a consumer's journal.
type booked struct {
	UID         string `json:"event_uid"`
	Application string `json:"thrive_application_uid"`
	Sequence    int    `json:"sequence"`
}

// The published consumers, run as the comments at their top say, lose no event and book none twice,
// however often they and the server are killed and responses are cut. They follow no redirect.
func TestConsumersSurvive(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for name, file := range map[string]string{
		"go": "go/main.go", "python": "python/consumer.py", "typescript": "typescript/consumer.ts",
	} {
		command := s.built(name, filepath.Join(s.root, "web/docs/samples/consumer", file))
		t.Run(name, func(t *testing.T) {
			s.redirect(t, command)
			s.follow(t, filepath.Join(s.Folder, name+".jsonl"), command)
		})
	}
}

// built follows the comment at the top of a sample, and returns the final command, which runs it.
func (s *testServer) built(name, sample string) *exec.Cmd {
	s.Helper()
	source, err := os.ReadFile(sample)
	if err != nil {
		s.Fatal(err)
	}
	folder := filepath.Join(s.Folder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		s.Fatal(err)
	}
	s.write(filepath.Join(name, filepath.Base(sample)), source)
	shell := func(command string) *exec.Cmd {
		run := exec.CommandContext(s.Context(), "sh", "-c", command)
		run.Dir = folder
		return run
	}
	for line := range strings.Lines(string(source)) {
		command, printed := strings.CutPrefix(strings.TrimPrefix(line, "//"), "   ")
		if !printed {
			command, printed = strings.CutPrefix(line, "//\t")
		}
		command = strings.TrimSpace(command)
		run, last := strings.CutPrefix(command,
			"BASE_URL=... CLIENT_ID=... CLIENT_SECRET=... JOURNAL=journal.jsonl ")
		switch {
		case !printed:
		case last && strings.HasPrefix(run, "go run "):
			// go run starts another process, which would survive a kill.
			s.must(shell("go build -o consumer " + strings.TrimPrefix(run, "go run ")))
			return shell("exec ./consumer")
		case last:
			return shell("exec " + run)
		case strings.HasPrefix(command, "npm install "):
			err := os.Symlink(filepath.Join(s.root, "tools/node_modules"),
				filepath.Join(folder, "node_modules"))
			if err != nil {
				s.Fatal(err)
			}
		default:
			s.must(shell(command))
		}
	}
	s.Fatalf("the head of %s does not say how to run it", sample)
	return nil
}

// redirect redirects a consumer to another server, which must not get the secret.
func (s *testServer) redirect(t *testing.T, command *exec.Cmd) {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s came with %v", r.URL, r.Header)
		w.WriteHeader(http.StatusForbidden) // makes the consumer exit
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	var said bytes.Buffer
	consumer := s.consumer(t, command, server.URL, filepath.Join(t.TempDir(), "journal"))
	consumer.Stdout, consumer.Stderr = &said, &said
	if err := consumer.Run(); err == nil || !strings.Contains(said.String(), "307") {
		t.Errorf("ended with %v and says %q, want the 307", err, said.String())
	}
}

// follow makes events while it kills a consumer and the server, and compares the final journal with
// the events that exist.
func (s *testServer) follow(t *testing.T, journal string, command *exec.Cmd) {
	t.Helper()
	const kills, each = 6, 5
	wrong := []http.HandlerFunc{cutShort, answer(`{}`), answer(`{"result":{}}`)}
	db := s.Open(t)
	for round := range kills {
		consumer := s.start(t, journal, command, wrong[round%len(wrong)])
		before := len(read(t, journal))
		for i := range each {
			s.event(t, fmt.Sprintf("Task %d of round %d", i, round))
		}
		// Each round kills it at another moment: before it has read anything, in the
		// middle, or when all is booked.
		waittest.Within(t, time.Minute, "enough is booked", func() bool {
			return len(read(t, journal))-before >= round
		})
		if round == kills/2 {
			s.server.Kill()
			s.server = s.Serve()
		}
		if err := consumer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = consumer.Wait()
	}
	// A partial last line, as a crash leaves it, is no event.
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"events": [{"event_uid": "torn`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	total := pgtest.Count(t, db, `
		SELECT count(*)
		  FROM events
		 WHERE merchant_uid = (SELECT merchant_uid FROM applications WHERE application_uid = $1)`,
		s.data.Loans[0].UID)
	consumer := s.start(t, journal, command, wrong[kills%len(wrong)])
	defer func() { _, _ = consumer.Process.Kill(), consumer.Wait() }()
	waittest.Within(t, time.Minute, "everything is booked", func() bool {
		return len(read(t, journal)) >= total
	})
	seen, last := map[string]bool{}, map[string]int{}
	for _, event := range read(t, journal) {
		if seen[event.UID] || event.Sequence <= last[event.Application] {
			t.Errorf("%+v is there twice, or came after number %d", event, last[event.Application])
		}
		seen[event.UID], last[event.Application] = true, event.Sequence
	}
	if len(seen) != total {
		t.Errorf("%d events are booked, want %d", len(seen), total)
	}
}

// cutShort sends less than its Content-Length announces.
func cutShort(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "152")
	_, _ = io.WriteString(w, `{"timestamp":"2026-11-21T09:30:00.123Z",`)
}

// answer answers 200 with content that is no page of the feed, as a gateway might.
func answer(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, content)
	}
}

// start runs a consumer whose first response is wrong.
func (s *testServer) start(
	t *testing.T, journal string, command *exec.Cmd, wrong http.HandlerFunc,
) *exec.Cmd {
	t.Helper()
	server, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var answered atomic.Bool
	through := httputil.NewSingleHostReverseProxy(server)
	through.ErrorLog = log.New(io.Discard, "", 0) // both ends are killed
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answered.Swap(true) {
			through.ServeHTTP(w, r)
			return
		}
		wrong(w, r)
	}))
	t.Cleanup(proxy.Close)
	consumer := s.consumer(t, command, proxy.URL+"/api", journal)
	if err := consumer.Start(); err != nil {
		t.Fatal(err)
	}
	return consumer
}

// consumer prepares the process of a consumer.
func (s *testServer) consumer(t *testing.T, command *exec.Cmd, baseURL, journal string) *exec.Cmd {
	t.Helper()
	client := s.data.Partners[0].Clients[0]
	consumer := exec.CommandContext(t.Context(), command.Path, command.Args[1:]...)
	consumer.Dir = command.Dir
	consumer.Env = append(os.Environ(), "BASE_URL="+baseURL, "CLIENT_ID="+client.ID,
		"CLIENT_SECRET="+client.Secret, "JOURNAL="+journal)
	return consumer
}

// event causes an event of the demo's first loan.
func (s *testServer) event(t *testing.T, title string) {
	t.Helper()
	status := e2etest.Call(t, s.data, http.MethodPost,
		s.server.URL+"/api/v2/sandbox/application/"+s.data.Loans[0].UID.String()+"/task",
		`{"title": "`+title+`"}`)
	if status != http.StatusCreated {
		t.Fatalf("adding a task answered %d", status)
	}
}

// read returns the events of the complete lines of a journal.
func read(t *testing.T, journal string) []booked {
	t.Helper()
	text, err := os.ReadFile(journal)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var events []booked
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var page struct{ Events []booked }
		if err := json.Unmarshal(line, &page); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		events = append(events, page.Events...)
	}
	return events
}
