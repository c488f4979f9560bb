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
	uids := []uuid.UUID{uid}
	_, err := sent.timeTo(arrived, uids)
	if err == nil || !strings.Contains(err.Error(), uid.String()) {
		t.Errorf("a webhook that never came: %v", err)
	}
	arrived.noteArrival(start.Add(time.Second), []byte(`{"application_id":"`+uid.String()+`"}`))
	took, err := sent.timeTo(arrived, uids)
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
	c, err := dialAPI(t.Context(), server.Listener.Addr().String(), client, nil)
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

func TestMemory(t *testing.T) {
	t.Parallel()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p := &program{process: &exec.Cmd{Process: self}}
	resident, before, err := p.memory()
	if err != nil || resident <= 0 || before < resident {
		t.Fatalf("%v MiB are resident, the peak is %v MiB (%v)", resident, before, err)
	}
	grown := make([]byte, 64<<20)
	for i := range grown {
		grown[i] = byte(i)
	}
	_, after, err := p.memory()
	if err != nil || after < float64(len(grown)>>20) || grown[1] != 1 {
		t.Errorf("the peak is %v MiB after taking 64 (%v)", after, err)
	}
}

func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		t.Run(schemeName(secured), func(t *testing.T) {
			t.Parallel()
			var bodies [][]byte
			var open cleanup
			r := newReceivers(&open, scene{
				endpoints: 2, secured: secured, arrived: func(at time.Time, body []byte) {
					if at.IsZero() {
						t.Error("the arrival has no time")
					}
					bodies = append(bodies, body)
				},
			})
			t.Cleanup(func() {
				var err error
				if open.run(&err); err != nil {
					t.Error(err)
				}
			})
			client := r.client(1)
			t.Cleanup(client.CloseIdleConnections)
			for _, url := range r.urls {
				if err := post(t.Context(), client, url, sampleBody); err != nil {
					t.Fatal(err)
				}
			}
			probe, err := http.NewRequestWithContext(t.Context(), http.MethodHead, r.urls[0], http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			probe.Header.Set("x-drawbridge-probe", "true")
			if looked, err := client.Do(probe); err != nil || looked.StatusCode != http.StatusOK {
				t.Errorf("a probe was answered %v (%v)", looked, err)
			}
			if err := r.check(2); err != nil || len(bodies) != 2 || !bytes.Equal(bodies[1], sampleBody) {
				t.Errorf("%d bodies arrived (%v)", len(bodies), err)
			}
			response, err := client.Post(r.urls[0], "application/json", bytes.NewReader(sampleBody))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("an unsigned POST was answered %s", response.Status)
			}
			if err := r.check(2); err == nil {
				t.Error("a refused request passed the check")
			}
		})
	}
}
