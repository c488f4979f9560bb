package webhooktest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// NewEvent returns a task event of the harness's application.
func (h *Harness) NewEvent() delivery.Event {
	return delivery.Event{
		UID: postgres.NewUID(h.Clock.Now()), Kind: lending.EventTaskCreated,
		ApplicationUID: h.Application, Status: "Pending",
		Subject: "application/" + h.Application.String(),
		Head:    []byte(`{"status":"Pending","timestamp":"`), Tail: []byte(`"}`),
	}
}

// Published is an event as it was recorded.
type Published struct {
	delivery.Event

	OccurredAt time.Time
	Body       []byte
}

// Publish commits one event and returns it.
func (h *Harness) Publish(t testing.TB) Published {
	t.Helper()
	event := h.NewEvent()
	act(t, h, func(ctx context.Context, tx *postgres.Tx) (delivery.Published, error) {
		return h.Deliveries.Publish(ctx, tx, event)
	})
	found := must(h.Deliveries.EventByUID(t.Context(), event.UID))(t)
	return Published{event, found.OccurredAt, found.Body}
}

// List returns every delivery, newest first.
func (h *Harness) List(t testing.TB) []delivery.Delivery {
	t.Helper()
	found, _, err := h.Deliveries.List(t.Context(), delivery.Filter{},
		postgres.Paging{Limit: postgres.MaxPage})
	return must(found, err)(t)
}

// Newest returns the delivery that was created last.
func (h *Harness) Newest(t testing.TB) delivery.Detail {
	t.Helper()
	return h.Detail(t, h.List(t)[0].UID)
}

// Detail reads a delivery with its attempts.
func (h *Harness) Detail(t testing.TB, uid uuid.UUID) delivery.Detail {
	t.Helper()
	return must(h.Deliveries.Get(t.Context(), uid))(t)
}

// Attempts formats the outcomes of a delivery's attempts, in order.
func Attempts(detail delivery.Detail) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %d:", detail.State, detail.AttemptCount)
	for _, attempt := range detail.Attempts {
		fmt.Fprintf(&text, " %d", attempt.HTTPStatus)
		if attempt.ErrorClass == sender.ClassUnknown {
			text.WriteString("?")
		}
	}
	return text.String()
}

// Resend sends deliveries again.
func (h *Harness) Resend(t testing.TB, uids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	return act(t, h, func(ctx context.Context, tx *postgres.Tx) ([]uuid.UUID, error) {
		return h.Deliveries.Resend(ctx, tx, uids, "support@example.com", "partner lost it")
	})
}

// The runs of jobs that a test took from the queue.
var (
	First = delivery.Run{Number: 1}
	Again = delivery.Run{Number: 2}
)

// TakeJobs takes the delivery jobs from the queue, oldest first.
func (h *Harness) TakeJobs(ctx context.Context) ([]delivery.Args, error) {
	var rows []struct {
		ID   int64  `db:"id"`
		Args []byte `db:"args"`
	}
	err := h.DB.SelectContext(ctx, &rows, `
		WITH taken AS (
			DELETE FROM river_job
			 WHERE id IN (SELECT id
			                FROM river_job
			               WHERE queue = $1
			               ORDER BY id
			               LIMIT 10
			                 FOR UPDATE SKIP LOCKED)
			RETURNING id, args
		)
		SELECT id, args FROM taken ORDER BY id`, delivery.Queue)
	if err != nil {
		return nil, err
	}
	jobs := make([]delivery.Args, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Args, &jobs[i]); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// Jobs takes the delivery jobs from the queue.
func (h *Harness) Jobs(t testing.TB) []delivery.Args {
	t.Helper()
	return must(h.TakeJobs(t.Context()))(t)
}

// Job takes the only delivery job from the queue.
func (h *Harness) Job(t testing.TB) delivery.Args {
	t.Helper()
	jobs := h.Jobs(t)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs in the queue, want 1", len(jobs))
	}
	return jobs[0]
}

// Work works the delivery jobs in the queue and returns how many there were.
func (h *Harness) Work(t testing.TB) int {
	t.Helper()
	jobs := h.Jobs(t)
	for _, job := range jobs {
		if err := h.Deliveries.Deliver(t.Context(), job, First); err != nil {
			t.Fatal(err)
		}
	}
	return len(jobs)
}

// DeliverAll works all jobs of the queue concurrently, as many workers do, until the
// queue is empty.
func (h *Harness) DeliverAll(t testing.TB, ctx context.Context, group *sync.WaitGroup) {
	t.Helper()
	for {
		jobs := h.Jobs(t)
		if len(jobs) == 0 {
			return
		}
		for _, job := range jobs {
			group.Go(func() {
				if err := h.Deliveries.Deliver(ctx, job, First); err != nil {
					t.Errorf("delivering %s: %v", job.DeliveryUID, err)
				}
			})
		}
	}
}

// EnqueueDue enqueues due deliveries and returns how many there were.
func (h *Harness) EnqueueDue(t testing.TB) int {
	t.Helper()
	return must(h.Deliveries.EnqueueDue(t.Context()))(t)
}

// Finish makes every attempt of the published events, as they fall due.
func (h *Harness) Finish(t testing.TB) {
	t.Helper()
	for range 3 {
		h.Work(t)
		h.Clock.Move(12 * time.Minute)
		h.EnqueueDue(t)
	}
	h.Work(t)
}

// GetKnown makes every endpoint answer an event: until then it gets one at a time.
func (h *Harness) GetKnown(t testing.TB) {
	t.Helper()
	h.Publish(t)
	h.Work(t)
}

// Parked counts the deliveries that wait for their subscription.
func (h *Harness) Parked(t testing.TB) int {
	t.Helper()
	return h.Count(t, `SELECT count(*) FROM deliveries WHERE parked AND NOT queued`)
}

// Failures publishes events and makes all of their deliveries fail for good.
func (h *Harness) Failures(t testing.TB, count int) {
	t.Helper()
	for range count {
		h.Publish(t)
		h.Clock.Move(time.Second)
	}
	h.FailAll(t)
}

// FailAll makes every open delivery fail for good.
func (h *Harness) FailAll(t testing.TB) {
	t.Helper()
	h.Exec(t, `
		UPDATE deliveries
		   SET state = 'failed', attempt_count = 3, next_attempt_at = NULL, queued = false,
		       finished_at = $1, last_http_status = 503, last_error_class = 'http_5xx',
		       last_duration_us = 1000
		 WHERE state IN ('pending', 'retrying')`, h.Clock.Now())
	h.Exec(t, `DELETE FROM river_job`)
}

// ManyFailed inserts failed deliveries, each of a different event.
func (h *Harness) ManyFailed(t testing.TB, count int) {
	t.Helper()
	h.Exec(t, `
		WITH event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body)
			SELECT drawbridge_uid($1), $1::timestamptz + n * interval '1 microsecond',
			       'task.created', $2, $3, $4, 'Pending', '{}'
			  FROM generate_series(1, $5) AS n
			RETURNING *
		)
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, attempt_count, queued)
		SELECT drawbridge_uid($1), $1, s.subscription_uid, event_uid, occurred_at, kind,
		       application_uid, status, 'failed', 3, false
		  FROM event, subscriptions s
		 WHERE s.partner_uid = $2`,
		h.Clock.Now(), h.Partner, h.Merchant, h.Application, count)
	h.Clock.Move(time.Second)
}

// Backlog adds deliveries of one event that wait to be enqueued.
func (h *Harness) Backlog(t testing.TB, count int, due time.Time) {
	t.Helper()
	event := h.Publish(t)
	h.Exec(t, `DELETE FROM river_job`)
	h.Exec(t, `DELETE FROM deliveries WHERE event_uid = $1`, event.UID)
	h.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, next_attempt_at, queued)
		SELECT drawbridge_uid($1), $1, s.subscription_uid, $2, $3, $4, $5, $6, 'pending', $7, false
		  FROM generate_series(1, $8), subscriptions s`,
		h.Clock.Now(), event.UID, event.OccurredAt, string(event.Kind), event.ApplicationUID,
		event.Status, due, count)
}
