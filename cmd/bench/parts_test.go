package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/partner"
)

func TestMoments(t *testing.T) {
	t.Parallel()
	sent, arrived := newMoments(), newMoments()
	uid, start := uuid.New(), time.Now()
	sent.note(uid, start)
	if _, err := sent.until(arrived); err == nil || !strings.Contains(err.Error(), uid.String()) {
		t.Errorf("a webhook that never came: %v", err)
	}
	arrived.noteArrival(start.Add(time.Second), []byte(`{"application_id":"`+uid.String()+`"}`))
	took, err := sent.until(arrived)
	if err != nil || len(took.each) != 1 || took.each[0] != time.Second {
		t.Errorf("took %v (%v), want a second", took.each, err)
	}
}

func TestCaller(t *testing.T) {
	t.Parallel()
	type request struct{ method, path, id, secret, key, contentType, body string }
	seen := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- request{
			r.Method, r.URL.Path, r.Header.Get("x-service-client-id"),
			r.Header.Get("x-service-client-secret"), r.Header.Get("Idempotency-Key"),
			r.Header.Get("Content-Type"), string(body),
		}
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "not now")
		}
	}))
	t.Cleanup(server.Close)
	client := partner.Issued{Credentials: partner.Credentials{ClientID: "id", Secret: "hidden"}}
	c, err := dialAPI(t.Context(), server.Listener.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	tests := []struct {
		call call
		want request
		says string
	}{
		{
			call{method: http.MethodPost, path: "/draw", key: "k-1"},
			request{http.MethodPost, "/draw", "id", "hidden", "k-1", "", ""},
			"",
		},
		{
			call{method: http.MethodGet, path: "/loan"},
			request{http.MethodGet, "/loan", "id", "hidden", "", "", ""},
			"",
		},
		{
			call{method: http.MethodPut, path: "/accept", body: `{"a":1}`},
			request{http.MethodPut, "/accept", "id", "hidden", "", "application/json", `{"a":1}`},
			"/accept answered 409 Conflict: not now",
		},
	}
	for _, test := range tests { // one connection: one after the other
		err := c.do(test.call)
		if got := <-seen; got != test.want {
			t.Errorf("the server saw %+v, want %+v", got, test.want)
		}
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s ended with %v, want %q", test.call.path, err, test.says)
		}
	}
}

func TestPDF(t *testing.T) {
	t.Parallel()
	content := pdf(1 << 10)
	if len(content) != 1<<10 || !bytes.HasPrefix(content, []byte("%PDF-1.4\n")) ||
		!bytes.HasSuffix(content, []byte("\n%%EOF\n")) {
		t.Errorf("%d bytes: %q", len(content), content)
	}
}

func TestPeak(t *testing.T) {
	t.Parallel()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p := &program{process: &exec.Cmd{Process: self}}
	before, err := p.peak()
	if err != nil || before <= 0 {
		t.Fatalf("the peak is %v MiB (%v)", before, err)
	}
	grown := make([]byte, 64<<20)
	for i := range grown {
		grown[i] = byte(i)
	}
	after, err := p.peak()
	if err != nil || after < float64(len(grown)>>20) || grown[1] != 1 {
		t.Errorf("the peak is %v MiB after taking 64 (%v)", after, err)
	}
}
