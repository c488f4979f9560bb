package faults

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

// newBlackHole accepts connections and never answers. It returns its URL and
// how many connections are open.
func newBlackHole(t *testing.T) (string, func() int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var open atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer open.Add(-1)
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn) // until the sender gives up
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/hook", open.Load
}

// TestHangingEndpointDelaysNobody floods a partner whose first endpoint never answers with
// far more deliveries than the service has workers. The healthy endpoint still gets every
// event at once.
func TestHangingEndpointDelaysNobody(t *testing.T) {
	t.Parallel()
	const events = 600
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "1m"
	data := w.DemoData()
	if got := w.Run("", "client", "rate", data.Partners[0].Clients[0].ID,
		"--rate", "5000", "--burst", "10000"); got.Status != 0 {
		t.Fatalf("raising the rate ended with %d: %s", got.Status, got.Stderr)
	}
	url, held := newBlackHole(t)
	w.Subscribe(data, url, "--auth", "none")
	w.Subscribe(data, e.URL)
	s := w.Serve()
	tasks := fmt.Sprintf("%s/api/v2/sandbox/application/%s/task", s.URL, data.Loans[0].UID)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < events; i += 8 {
				body := fmt.Sprintf(`{"title":"task %d"}`, i)
				if status := e2etest.Call(t, data, http.MethodPost, tasks, body); status != http.StatusCreated {
					t.Errorf("adding a task answered %d", status)
				}
			}
		})
	}
	group.Wait()
	seen := map[string]bool{}
	limit := time.After(55 * time.Second) // before the first hanging request times out
	for len(seen) < events {
		select {
		case request := <-e.Requests:
			uid, _ := request.Value("x-drawbridge-delivery")
			seen[uid] = true
			if !strings.Contains(string(request.Body), `"task_title"`) {
				t.Errorf("arrived: %s", request.Body)
			}
		case <-limit:
			t.Fatalf("only %d of %d events reached the healthy endpoint while %d requests hang",
				len(seen), events, held())
		}
	}
	if open := held(); open == 0 || open > 45 {
		t.Errorf("%d requests hang at once, want some and no more than the bound", open)
	}
}
