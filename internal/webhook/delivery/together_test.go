package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// TestDeliveriesTogether makes many attempts at once, each with a different answer, and
// finds each in its own log.
func TestDeliveriesTogether(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	const many = 60
	want := map[string]int{}
	for i := range many {
		status := 206 + i%2*300 + i
		endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
			w.Header().Set("x-number", fmt.Sprint(i))
			w.WriteHeader(status)
			fmt.Fprintf(w, "answer \"%d\" \\ {,}", i)
		})
		made, _ := h.Subscribe(t, endpoint.URL, nil)
		want[made.UID.String()] = status
	}
	h.Publish(t)
	var workers sync.WaitGroup
	for jobs := h.Jobs(t); len(jobs) > 0; jobs = h.Jobs(t) {
		for _, job := range jobs {
			workers.Go(func() {
				if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
					t.Error(err)
				}
			})
		}
	}
	workers.Wait()
	for _, found := range h.List(t) {
		checkOwnAnswer(t, h.Detail(t, found.UID), want[found.SubscriptionUID.String()])
	}
}

func checkOwnAnswer(t *testing.T, found delivery.Detail, status int) {
	t.Helper()
	if len(found.Attempts) != 1 || found.AttemptCount != 1 {
		t.Fatalf("%d attempts, counted %d", len(found.Attempts), found.AttemptCount)
	}
	attempt := found.Attempts[0]
	state := delivery.StateDelivered
	if status >= 300 {
		state = delivery.StateRetrying
	}
	if attempt.HTTPStatus != status || found.State != state {
		t.Errorf("status %d and state %s, want %d and %s",
			attempt.HTTPStatus, found.State, status, state)
	}
	number := ""
	for _, header := range attempt.ResponseHeaders {
		if http.CanonicalHeaderKey(header.Name) == "X-Number" {
			number = header.Value
		}
	}
	if body := fmt.Sprintf(`answer %q \ {,}`, number); string(attempt.ResponseBody) != body {
		t.Errorf("the answer is %q, want %q", attempt.ResponseBody, body)
	}
	if attempt.URL != found.URL || attempt.SubscriptionVersion != 1 {
		t.Errorf("an attempt at %s, version %d", attempt.URL, attempt.SubscriptionVersion)
	}
}

// TestLockedDeliveryHoldsUpNobody locks one of many deliveries, as a long transaction of
// an operator does, while the attempts of all are recorded.
func TestLockedDeliveryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	for range 10 {
		h.Subscribe(t, endpoint.URL, nil)
	}
	h.Publish(t)
	jobs := h.Jobs(t)
	tx := pgtest.Begin(t, h.DB,
		`SELECT 1 FROM deliveries WHERE delivery_uid = $1 FOR UPDATE`, jobs[0].DeliveryUID)
	done := make(chan error, len(jobs))
	for _, job := range jobs {
		go func() {
			done <- h.Deliveries.Deliver(context.WithoutCancel(t.Context()), job,
				webhooktest.First)
		}()
	}
	for range len(jobs) - 1 { // none of these waits for the lock
		if err := waittest.Receive(t, "a delivery", done); err != nil {
			t.Error(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	delivered := h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`)
	if delivered != len(jobs) || len(endpoint.Requests()) != len(jobs) {
		t.Errorf("%d delivered by %d requests, want %d", delivered, len(endpoint.Requests()), len(jobs))
	}
}
