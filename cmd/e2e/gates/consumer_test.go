//go:build gates

package gates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// booked is an event as a consumer's journal has it.
type booked struct {
	UID         string `json:"event_uid"`
	Application string `json:"thrive_application_uid"`
	Sequence    int    `json:"sequence"`
}

// The published consumers lose no event and book none twice, however often they and the server are
// killed.
func TestConsumersSurvive(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	samples := filepath.Join(s.root, "web/docs/samples/consumer")
	program := filepath.Join(s.Folder, "consumer")
	s.must(exec.CommandContext(t.Context(), "go", "build", "-o", program, samples+"/go/main.go"))
	s.must(s.npm("tsc", "--strict", "--target", "es2022", "--module", "nodenext",
		"--typeRoots", filepath.Join(s.root, "tools/node_modules/@types"), "--types", "node",
		"--outDir", s.Folder, samples+"/typescript/consumer.ts"))
	for name, command := range map[string][]string{
		"go":         {program},
		"python":     {"python3", samples + "/python/consumer.py"},
		"typescript": {"node", filepath.Join(s.Folder, "consumer.js")},
	} {
		t.Run(name, func(t *testing.T) {
			s.follow(t, filepath.Join(s.Folder, name+".jsonl"), command)
		})
	}
}

// follow makes events while it kills a consumer and the server, and compares what the journal has
// in the end with what there is.
func (s *stand) follow(t *testing.T, journal string, command []string) {
	t.Helper()
	const kills, each = 6, 5
	db := s.Open(t)
	for round := range kills {
		consumer := s.start(t, journal, command)
		before := len(read(t, journal))
		for i := range each {
			s.event(t, fmt.Sprintf("Task %d of round %d", i, round))
		}
		// It dies at another moment of each round: before it has read anything, in the
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
	// What a crash leaves behind the last whole line is no event.
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
	var total int
	if err := db.GetContext(t.Context(), &total, `
		SELECT count(*)
		  FROM events
		 WHERE merchant_uid = (SELECT merchant_uid FROM applications WHERE application_uid = $1)`,
		s.data.Loans[0].UID); err != nil {
		t.Fatal(err)
	}
	consumer := s.start(t, journal, command)
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

func (s *stand) start(t *testing.T, journal string, command []string) *exec.Cmd {
	t.Helper()
	client := s.data.Partners[0].Clients[0]
	consumer := exec.CommandContext(t.Context(), command[0], command[1:]...)
	consumer.Env = append(os.Environ(), "BASE_URL="+s.server.URL+"/api", "CLIENT_ID="+client.ID,
		"CLIENT_SECRET="+client.Secret, "JOURNAL="+journal)
	if err := consumer.Start(); err != nil {
		t.Fatal(err)
	}
	return consumer
}

// event lets something happen to the demo's first loan.
func (s *stand) event(t *testing.T, title string) {
	t.Helper()
	status := e2etest.Call(t, s.data, http.MethodPost,
		s.server.URL+"/api/v2/sandbox/application/"+s.data.Loans[0].UID.String()+"/task",
		`{"title": "`+title+`"}`)
	if status != http.StatusCreated {
		t.Fatalf("adding a task answered %d", status)
	}
}

// read returns the events of the whole lines of a journal.
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
