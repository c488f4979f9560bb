package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

// TestKilledWithDeliveriesHeld kills a process that holds deliveries back for an
// endpoint which does not answer. The next process sends those as the endpoint
// allows, without waiting until the dead one's requests are given up, and each
// once.
func TestKilledWithDeliveriesHeld(t *testing.T) {
	t.Parallel()
	const events, callers = 150, 8
	w, r := e2etest.New(t), newRecordingReceiver(t, 1)
	data := w.DemoData()
	w.Subscribe(data, &e2etest.Endpoint{URL: r.url}, "--auth", "none")
	s, db := w.Serve(), w.Open(t)
	const delivered = `SELECT count(*) FROM deliveries WHERE state = 'delivered'`
	// An endpoint that has answered gets as many requests at a time as any.
	r.linger(0)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	e2etest.WaitForCount(t, db, 1, delivered)
	r.linger(time.Hour)
	tasks := fmt.Sprintf("%s/api/v2/sandbox/application/%s/task", s.URL, data.Loans[0].UID)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := caller; i < events; i += callers {
				body := fmt.Sprintf(`{"title":"task %d"}`, i)
				if status := e2etest.Call(t, data, http.MethodPost, tasks, body); status != http.StatusCreated {
					t.Errorf("adding a task answered %d", status)
				}
			}
		})
	}
	group.Wait()
	const inFlight = 40 // as many as a process sends to one endpoint at a time
	e2etest.WaitForCount(t, db, events-inFlight, `SELECT count(*) FROM deliveries WHERE held`)
	s.Kill()
	var held []string
	if err := db.SelectContext(
		t.Context(), &held, `SELECT delivery_uid FROM deliveries WHERE held`); err != nil {
		t.Fatal(err)
	}

	r.linger(0)
	w.Serve()
	e2etest.WaitForCount(t, db, 1+len(held), delivered)
	for _, uid := range held {
		if got := r.of(uid); len(got) != 1 {
			t.Errorf("held delivery %s came %d times", uid, len(got))
		}
	}
	e2etest.WaitForCount(t, db, 0, `SELECT count(*) FROM attempts WHERE error_class = 'unknown'`)
}
