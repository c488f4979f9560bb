package faults

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestKilledUnderBackpressure kills a process that holds deliveries back for an endpoint
// which does not answer. The next process sends those as the endpoint allows, each once
// more, without waiting until the dead process's requests time out.
func TestKilledUnderBackpressure(t *testing.T) {
	t.Parallel()
	const events, callers = 150, 8
	w, r := e2etest.New(t), newRecordingReceiver(t, 1)
	data := w.DemoData()
	w.Subscribe(data, r.url, "--auth", "none")
	s, db := w.Serve(), w.Open(t)
	const delivered = `SELECT count(*) FROM deliveries WHERE state = 'delivered'`
	// An endpoint that has answered gets the full number of requests at a time.
	r.linger(0)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	e2etest.WaitForCount(t, db, 1, delivered)
	r.linger(time.Hour)
	tasks := fmt.Sprintf("%s/api/v2/sandbox/application/%s/task", s.URL, data.Loans[0].UID)
	var group sync.WaitGroup
	var added atomic.Int64 // a busy machine may refuse a few
	for caller := range callers {
		group.Go(func() {
			for i := caller; i < events; i += callers {
				body := fmt.Sprintf(`{"title":"task %d"}`, i)
				if e2etest.Call(t, data, http.MethodPost, tasks, body) == http.StatusCreated {
					added.Add(1)
				}
			}
		})
	}
	group.Wait()
	const inFlight = 40 // the most requests that a process has in flight to one endpoint
	const heldOnes = `SELECT count(*) FROM deliveries WHERE held`
	waittest.Within(t, time.Minute, "deliveries are held back", func() bool {
		return int64(pgtest.Count(t, db, heldOnes)) >= added.Load()-inFlight
	})
	s.Kill()
	var held []string
	if err := db.SelectContext(
		t.Context(), &held, `SELECT delivery_uid FROM deliveries WHERE held`); err != nil {
		t.Fatal(err)
	}
	if len(held) < inFlight {
		t.Fatalf("only %d deliveries are held: nothing is tested", len(held))
	}
	before := map[string]int{} // some may have had an attempt that timed out
	for _, uid := range held {
		before[uid] = len(r.of(uid))
	}

	r.linger(0)
	w.Serve()
	waittest.Within(t, time.Minute, "what was held is delivered", func() bool {
		return pgtest.Count(t, db, delivered+` AND delivery_uid = ANY ($1)`, pq.Array(held)) == len(held)
	})
	for _, uid := range held {
		if came := len(r.of(uid)) - before[uid]; came != 1 {
			t.Errorf("held delivery %s came %d times", uid, came)
		}
	}
	// Attempts in flight at the kill are unknown; deliveries that were held back are not.
	unknown := pgtest.Count(t, db, `
		SELECT count(*)
		  FROM attempts
		 WHERE error_class = 'unknown'
		   AND delivery_uid = ANY ($1)`, pq.Array(held))
	if unknown != 0 {
		t.Errorf("%d attempts of what was held back are unknown", unknown)
	}
}
