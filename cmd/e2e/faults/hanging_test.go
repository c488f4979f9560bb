package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/cmd/e2e/e2etest"
)

// TestFaultHangingEndpoints lets many endpoints hang, from the first request on, while one
// is healthy: that one gets each event soon after it was committed. The delay is checked
// only at full size, since otherwise many tests run at once.
func TestFaultHangingEndpoints(t *testing.T) {
	t.Parallel()
	hanging, events, pause, patience := 30, 60, 50*time.Millisecond, 25*time.Second
	if *chaos {
		hanging, events, pause, patience = 200, 240, 250*time.Millisecond, 2*time.Second
	}
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	if got := w.Run("", "client", "rate", data.Partners[0].Clients[0].ID,
		"--rate", "5000", "--burst", "10000"); got.Status != 0 {
		t.Fatalf("raising the rate ended with %d: %s", got.Status, got.Stderr)
	}
	hole, held := newBlackHole(t)
	w.Subscribe(data, e.URL)
	hangMany(w, data, hole, hanging)
	s := w.Serve()
	tasks := fmt.Sprintf("%s/api/v2/sandbox/application/%s/task", s.URL, data.Loans[0].UID)
	arrived := make(chan struct{})
	lags := make([]time.Duration, 0, events)
	var committed sync.Map
	go func() {
		defer close(arrived)
		for range events {
			request := <-e.Requests
			if at, ok := committed.LoadAndDelete(titleOf(request.Body)); ok {
				lags = append(lags, time.Since(at.(time.Time)))
			}
		}
	}()
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for i := range events {
		<-pace.C
		title := fmt.Sprintf("task %d", i)
		committed.Store(title, time.Now())
		body := fmt.Sprintf(`{"title":%q}`, title)
		if status := e2etest.Call(t, data, http.MethodPost, tasks, body); status != http.StatusCreated {
			t.Fatalf("adding a task answered %d", status)
		}
	}
	select {
	case <-arrived:
	case <-time.After(patience + 10*time.Second):
		t.Fatalf("an event has not reached the healthy endpoint while %d requests hang", held())
	}
	if len(lags) != events {
		t.Fatalf("%d of %d events arrived once", len(lags), events)
	}
	slices.Sort(lags)
	p99 := lags[len(lags)*99/100]
	t.Logf("%d endpoints hang with %d requests: p50 %s, p99 %s",
		hanging, held(), lags[len(lags)/2], p99)
	if p99 > patience {
		t.Errorf("p99 %s, want at most %s", p99, patience)
	}
}

// hangMany subscribes many hanging endpoints to all events.
func hangMany(w *e2etest.Harness, data e2etest.Demo, hole string, many int) {
	w.T.Helper()
	first := w.Subscribe(data, hole, "--auth", "none")
	db := w.Open(w.T)
	uids := make([]string, many-1)
	for i := range uids {
		uids[i] = uuid.NewString()
	}
	for _, table := range []string{"subscriptions", "subscription_versions"} {
		_, err := db.ExecContext(w.T.Context(), `
			INSERT INTO `+table+`
			SELECT (jsonb_populate_record(s, jsonb_build_object('subscription_uid', uid))).*
			  FROM `+table+` s, unnest($2::uuid[]) AS uid
			 WHERE s.subscription_uid = $1`, first.UID, pq.Array(uids))
		if err != nil {
			w.T.Fatal(err)
		}
	}
}

// titleOf is the title of the task in an event's body.
func titleOf(body []byte) string {
	var event struct {
		TaskTitle string `json:"task_title"`
	}
	_ = json.Unmarshal(body, &event)
	return event.TaskTitle
}
