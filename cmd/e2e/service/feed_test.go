package service

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// resident is the resident memory of a process, in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	size, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// A thousand requests that wait on one process need little memory; on SIGTERM all of
// them are answered at once.
func TestWaitingCallsAreCheapAndEndWithTheService(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	db := w.Open(t)
	w.Execute(db, `UPDATE clients SET rate_per_second = 10000, rate_burst = 20000`)
	s := w.Serve("--roles", "api")
	now := e2etest.Send(t, data, http.MethodGet, s.URL+"/api/v2/events?after=latest", nil)
	address := s.URL + "/api/v2/events?wait=30&after=" + now["next_cursor"].(string)
	before := resident(t, s.Command.Process.Pid)
	const count = 1000
	var answered atomic.Int32
	var calls sync.WaitGroup
	for range count {
		calls.Go(func() {
			if status := e2etest.Call(t, data, http.MethodGet, address, ""); status == http.StatusOK {
				answered.Add(1)
			}
		})
	}
	metric := func() bool {
		response, err := http.Get(s.URL + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains(string(text), fmt.Sprintf("\ndrawbridge_feed_waiting %d\n", count))
	}
	waittest.Within(t, time.Minute, "all of them wait", metric)
	if grown := resident(t, s.Command.Process.Pid) - before; grown > 100<<10 {
		t.Errorf("%d calls that wait hold %d MiB", count, grown>>10)
	}
	began := time.Now()
	if status := s.Stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
	calls.Wait()
	if answered.Load() != count {
		t.Errorf("%d of %d calls were answered", answered.Load(), count)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("they were answered in %s, which is no sooner than by themselves", took)
	}
}

// hook is a receiver on a laptop, which accepts webhooks or refuses them as the test says.
type hook struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
	refuse atomic.Bool
	faults []string
}

func newHook(t *testing.T, secret string) *hook {
	t.Helper()
	h := new(hook)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.Header.Get("x-hmac-signature") != hex.EncodeToString(mac.Sum(nil)) ||
			r.Header.Get("x-drawbridge-event") == "" || r.Header.Get("x-drawbridge-event-id") == "" ||
			r.Header.Get("x-drawbridge-sequence") == "" || r.Header.Get("x-drawbridge-delivery") != "" ||
			r.Header.Get("x-drawbridge-attempt") != "" ||
			r.Header.Get("x-drawbridge-environment") == "" {
			h.faults = append(h.faults, fmt.Sprint(r.Header))
		}
		if h.refuse.Swap(false) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h.bodies = append(h.bodies, string(body))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bodies)
}

// lockedBuffer collects a command's output while it runs.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// The laptop gets each event of the specification's nine kinds once and in order, though its
// receiver fails and the server restarts. Earlier events are not forwarded.
func TestListenForwardsEachEvent(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	// Wait until the events of the demo data are published.
	e2etest.WaitForCount(t, w.Open(t), 0, `SELECT count(*) FROM outbox`)
	w.Env["DRAWBRIDGE_LISTEN"] = strings.TrimPrefix(s.URL, "http://")
	client := data.Partners[0].Clients[0]
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(client.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const key = "whsec_of_the_laptop"
	receiver := newHook(t, key)
	command := w.Command("listen", "--url", s.URL+"/api", "--client-id", client.ID,
		"--client-secret-file", secret, "--forward", receiver.URL+"/hook", "--secret", key)
	var lines, notes lockedBuffer
	command.Stdout, command.Stderr = &lines, &notes
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // it has already ended unless the test failed
	waittest.Within(t, time.Minute, "it follows the feed", func() bool {
		return strings.Contains(notes.String(), "following ")
	})
	create := func() {
		made := e2etest.Send(t, data, http.MethodPost, s.URL+"/api/v2/application", map[string]any{
			"requested_amount": "9000.00",
			"borrower": map[string]any{
				"first_name": "Lea", "last_name": "Laptop", "email": "lea@laptop.example",
			},
			"project": map[string]any{"name": "Porch"},
		})
		e2etest.Send(t, data, http.MethodPost, s.URL+"/api/v2/application/create-run-decision",
			map[string]any{"thrive_application_uid": made["thrive_application_uid"]})
	}
	receiver.refuse.Store(true)
	create()
	waittest.Within(t, time.Minute, "what was refused is repeated", func() bool {
		return len(receiver.got()) == 1
	})
	if status := s.Stop(); status != 0 {
		t.Fatalf("the service ended with %d", status)
	}
	s = w.Serve()
	create()
	drawn := e2etest.Send(t, data, http.MethodPost, fmt.Sprintf(
		"%s/api/v2/loan/%s/request-draw", s.URL, data.Loans[0].UID), map[string]any{})
	e2etest.Send(t, data, http.MethodPost, fmt.Sprintf("%s/api/v2/sandbox/disbursement/%.0f/status",
		s.URL, drawn["merchantDisbursementId"]), map[string]any{"status": "CANCELLED"})
	create()
	waittest.Within(t, time.Minute, "all have come and are printed", func() bool {
		return len(receiver.got()) >= 4 && strings.Count(lines.String(), "\n") >= 4
	})
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, notes.String())
	}
	bodies := receiver.got()
	times := make([]string, 0, len(bodies)) // the times of the events, in the order of arrival
	for _, body := range bodies {
		_, after, _ := strings.Cut(body, `"timestamp":"`)
		times = append(times, after[:min(len(after), len("2006-01-02T15:04:05.000000Z"))])
	}
	if len(bodies) != 4 || !slices.IsSorted(times) || len(receiver.faults) > 0 {
		t.Errorf("got %q, without what belongs there %q", bodies, receiver.faults)
	}
	if printed := lines.String(); strings.Count(printed, "application.status.update") != 3 ||
		strings.Count(printed, "disbursement.funding.") != 1 {
		t.Errorf("printed %q", printed)
	}
}

func TestListenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve("--roles", "api")
	client := data.Partners[0].Clients[0]
	given := map[string]string{
		"--url": s.URL + "/api", "--client-id": client.ID, "--client-secret-file": "-",
		"--forward": "http://127.0.0.1:1/hook", "--event": "task.created",
	}
	for _, test := range []struct {
		flag, value, stdin, says string
		status                   int
	}{
		{"--url", "127.0.0.1:8080", client.Secret, "--url", e2etest.ExitUsage},
		{"--forward", "ftp://x", client.Secret, "--forward", e2etest.ExitUsage},
		{"--event", "all", client.Secret, "--event", e2etest.ExitUsage},
		{"--merchant", "mine", client.Secret, "--merchant", e2etest.ExitUsage},
		{"--client-secret-file", "/nowhere", "", "--client-secret-file", e2etest.ExitUsage},
		{"--event", "task.created", "wrong", "UNAUTHORIZED", e2etest.ExitFailed},
	} {
		args := []string{"listen", test.flag, test.value}
		for flag, value := range given {
			if flag != test.flag {
				args = append(args, flag, value)
			}
		}
		got := w.Run(test.stdin, args...)
		if got.Status != test.status || !strings.Contains(got.Stderr, test.says) {
			t.Errorf("%s %s ended with %d: %s", test.flag, test.value, got.Status, got.Stderr)
		}
	}
}
